"""What is between a server and its database: TLS, a pooler, a frozen server, a database that is gone."""

from __future__ import annotations

import asyncio
import datetime
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from redkey.errors import StoreFailed
from redkey.stores.postgres import PostgresStore
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import append, wait_until
from tests.harness.ports import lasting_port
from tests.harness.postgres import cluster
from tests.harness.postgres_proxy import Proxy

FREEZER = """
import sys
from redkey.stores.postgres import PostgresStore
with PostgresStore(sys.argv[1]) as store, store.write(sys.argv[2]) as unit:
    unit.next_timestamp(sys.argv[2])
    print("inside", flush=True)
    sys.stdin.read()
"""


def name_of(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


# TLS.


class Authority:
    """A certificate authority of the test, and a certificate for localhost."""

    def __init__(self, folder: Path, name: str) -> None:
        self._key, self._folder = ec.generate_private_key(ec.SECP256R1()), folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = folder / f"{name}.pem"
        certificate = self._build(self._name, self._key, authority=True)
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def context(self) -> ssl.SSLContext:
        """The server's side of TLS."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        chain = self._folder / "server.pem"
        plain = serialization.NoEncryption()
        chain.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
            + self._build(subject, key, authority=False).public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        return context

    def _build(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        building = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        )
        return building.sign(self._key, hashes.SHA256())


def test_a_server_is_reached_by_tls_only_if_its_certificate_is_right(postgres_url: str, tmp_path: Path) -> None:
    right, wrong = Authority(tmp_path, "right"), Authority(tmp_path, "wrong")
    with Proxy(cluster().socket, tls=right.context()) as proxy:

        def url(host: str, authority: Authority) -> str:
            named = proxy.url(name_of(postgres_url), sslmode="verify-full", sslrootcert=str(authority.file))
            return named.replace("127.0.0.1", host)

        with PostgresStore(url("localhost", right)) as store:
            topic = store.create_topic()
            append(store, topic, 3)
            assert len(check_topic(store, topic)) == 3
        for address in (url("localhost", wrong), url("127.0.0.1", right)):
            with pytest.raises(StoreFailed) as refused:
                PostgresStore(address)
            assert "certificate" in refused.value.message


# A pooler.


@pytest.fixture
def pooler(postgres_url: str, tmp_path: Path) -> Iterator[str]:
    """The address of the database through PgBouncer in transaction mode."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed; apt-get install pgbouncer")
    port = lasting_port()
    settings = tmp_path / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={cluster().base} user=redkey\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 4\nignore_startup_parameters = extra_float_digits\n"
    )
    settings.chmod(0o644)
    tmp_path.chmod(0o755)
    # Root may not run it; another user may not be able to read the folders of root's tests.
    with settings.open("rb") as file:
        command = [program, "-u", "nobody"] if Path("/proc/self").stat().st_uid == 0 else [program]
        running = subprocess.Popen([*command, f"/proc/self/fd/{file.fileno()}"], pass_fds=(file.fileno(),))
        try:
            yield f"postgresql://redkey@127.0.0.1:{port}/{name_of(postgres_url)}?sslmode=disable&gssencmode=disable"
        finally:
            running.terminate()
            running.wait(60)


def test_a_store_works_behind_a_pooler_and_says_that_it_polls(pooler: str, postgres_url: str) -> None:
    def is_up() -> bool:
        try:
            PostgresStore(pooler).close()
        except StoreFailed:
            return False
        return True

    wait_until(is_up)
    with PostgresStore(pooler) as store, PostgresStore(postgres_url) as direct:
        assert "polled behind a connection pooler" in store.engine
        assert "pooler" not in direct.engine
        topic = direct.create_topic()
        for writer in (store, direct) * 10:
            append(writer, topic, 2)
        assert len(check_topic(store, topic)) == 40
        heard: list[int] = []
        store.known_head(topic)
        store.subscribe(lambda _, head: heard.append(head))
        append(direct, topic, 1)
        wait_until(lambda: heard == [41])


# A frozen server, a database that is gone.


def test_a_frozen_server_delays_the_others_by_six_seconds_at_most(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        topic = store.create_topic()
        append(store, topic, 1)
        frozen = subprocess.Popen(
            [sys.executable, "-c", FREEZER, postgres_url, topic], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert frozen.stdin is not None
        assert frozen.stdout is not None
        try:
            assert frozen.stdout.readline() == b"inside\n"
            frozen.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            append(store, topic, 1)
            waited = time.monotonic() - began
        finally:
            frozen.kill()
            frozen.wait()
            frozen.stdin.close()
            frozen.stdout.close()
        # PostgreSQL ends the frozen unit 5 seconds after it took the lock; the rest is this machine's.
        assert waited < 6
        assert len(check_topic(store, topic)) == 2


def test_the_event_loop_does_not_wait_for_a_database_that_is_gone(postgres_url: str) -> None:
    with Proxy(cluster().socket) as proxy, PostgresStore(proxy.url(name_of(postgres_url))) as store:
        topic = store.create_topic()
        proxy.closed = True
        proxy.cut_all()
        wait_until(lambda: store.connections.is_down)

        async def ask() -> str:
            connect, store.connections.connect = store.connections.connect, None  # type: ignore[assignment,method-assign]
            try:
                store.head(topic)
            except StoreFailed as refused:
                return refused.code
            finally:
                store.connections.connect = connect  # type: ignore[method-assign]
            return ""

        # The first question may still find a connection that was lost; none opens a new one on the loop.
        assert asyncio.run(ask()) == "store_unreachable"
        proxy.closed = False
        wait_until(lambda: not store.connections.is_down)
        assert store.head(topic).sequence == 0
