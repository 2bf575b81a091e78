"""A whole server on a disk that becomes full: it says so, loses nothing, and goes on when there is room again.

The disk is a small tmpfs in a mount namespace of the server's own, so the tests need the right to make one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.acts import begin_queue, create_task, until
from tests.harness.client import Client
from tests.harness.server import PATIENCE_SECONDS

MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'
# As root, or as the root of a user namespace of one's own.
UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


@pytest.fixture(scope="module")
def namespaces(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("disk")
    tried = subprocess.run(_on_disk(directory, "1m", "true"), capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip("no disk can be mounted in a namespace here")


def _on_disk(directory: Path, size: str, *command: str) -> list[str]:
    """The command, with a new disk of that size on the directory."""
    return [*UNSHARE, "sh", "-c", MOUNT, "sh", size, str(directory), *command]


def _is_told(said: str, code: str) -> None:
    """One line for the error with its code, one for where the directory came from, one for the next step."""
    error, where, hint = said.splitlines()
    assert error.endswith(f"[{code}]"), said
    assert where.strip().startswith("data: "), said
    assert hint.strip().startswith("hint: "), said


@contextmanager
def serving_on_disk(directory: Path, size: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A server on a disk of its own; the process, and its data directory as others see it."""
    disk = directory / "disk"
    disk.mkdir()
    serve = ["-m", "redkey", "serve", "--data", str(disk / "data"), "--port", "0", "--log-format", "json"]
    ready = directory / "ready"
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            _on_disk(disk, size, sys.executable, *serve, "--ready-file", str(ready)), stdout=log, stderr=log
        )
    try:
        until(lambda: ready.exists() or process.poll() is not None, PATIENCE_SECONDS)
        assert process.poll() is None, (directory / "log").read_text()
        yield process, Path(f"/proc/{process.pid}/root{disk}/data")
    finally:
        process.kill()
        process.wait()


def test_a_full_disk_is_told_and_the_server_goes_on_when_there_is_room(tmp_path: Path, namespaces: None) -> None:
    with serving_on_disk(tmp_path, "16m") as (process, data):
        credentials = json.loads((data / "credentials.json").read_text())
        ballast = data / "ballast"
        with Client(credentials["url"], credentials["apiKey"]) as client:
            queue = begin_queue(client)
            kept = create_task(client, queue)
            assert client.get("/readyz").status == 200
            _fill(ballast)
            until(lambda: client.get("/readyz").status == 503)
            unready = client.get("/readyz")
            assert (unready.json["code"], unready.headers["retry-after"]) == ("store_full", "1")
            for reply in (
                _first_refused(client, queue),
                client.put("/content", bytes(100_000)),
                client.post("/workspaces", {"name": "w" * 100}),
            ):
                assert (reply.status, reply.json["code"]) == (503, "store_full"), reply.text
                assert reply.headers["retry-after"] == "1"
            # Reading goes on.
            assert client.get(f"/tasks/{kept}").status == 200
            ballast.unlink()
            until(lambda: client.get("/readyz").status == 200)
            create_task(client, queue)
        process.send_signal(signal.SIGTERM)
        # Its disk is gone with it, so it has to be sound before.
        assert process.wait(PATIENCE_SECONDS) == 0, (tmp_path / "log").read_text()


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def _first_refused(client: Client, queue: str) -> object:
    """Pages that SQLite had already may still take a few records."""
    for _ in range(2000):
        reply = client.post(f"/queues/{queue}/tasks", {"title": "x" * 200})
        if reply.status != 201:
            return reply
    raise AssertionError("a full disk took 2,000 tasks")


@pytest.mark.parametrize(("begun", "room"), [(False, 0), (False, 200), (True, 0), (True, 64)])
def test_a_start_on_a_full_disk_is_one_line(tmp_path: Path, namespaces: None, begun: bool, room: int) -> None:
    """With so many KiB left, on a new data directory and on one that was in use."""
    disk = tmp_path / "disk"
    disk.mkdir()
    serve = f"{sys.executable} -m redkey serve --data {disk}/data --port 0"
    first = f"{serve} --ready-file {disk}/ready >/dev/null 2>&1 & until test -e {disk}/ready; do sleep 0.1; done"
    fill = f"cat /dev/zero > {disk}/ballast 2>/dev/null; truncate -s -{room}K {disk}/ballast"
    script = f"{f'{first}; kill $!; wait $!' if begun else 'true'}\n{fill}\nexec timeout 120 {serve}"
    done = subprocess.run(_on_disk(disk, "4m", "sh", "-c", script), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout
    assert done.stdout == ""
    _is_told(done.stderr, "store_full")


def test_a_start_that_cannot_keep_its_key_is_one_line(tmp_path: Path) -> None:
    """What fails after the store is open, as on a disk that becomes full meanwhile."""
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "credentials.json").mkdir()
    command = [sys.executable, "-m", "redkey", "serve", "--data", str(tmp_path / "data"), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    _is_told(done.stderr, "store_failed")
