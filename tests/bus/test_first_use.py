"""First use: the bus is found, a session is created when needed, and errors take one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from redkey.bus import BusClient
from redkey.bus.home import find_home, note_host
from redkey.cli import main
from redkey.errors import BusLost
from tests.bus.test_http import Caller
from tests.harness.bus_process import BusProcess
from tests.harness.running_bus import Running
from tests.harness.server import serving


def redkey(home: Path, *arguments: str, where: Path | None = None) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("REDKEY_", "WEAVE_"))}
    command = [sys.executable, "-m", "redkey", "bus", *arguments]
    environment = {**clean, "WEAVE_HOME": str(home)} if where is None else {**clean, "HOME": str(home)}
    return subprocess.run(command, env=environment, cwd=where, capture_output=True, text=True, timeout=60)


def a_file(home: Path) -> None:
    home.write_text("not a directory")


def below_a_file(home: Path) -> None:
    home.parent.rmdir()
    home.parent.write_text("not a directory")


def a_linked_log(home: Path) -> None:
    home.mkdir()
    (home / "bus.db").symlink_to(home.parent / "elsewhere")


def a_linked_lock(home: Path) -> None:
    home.mkdir()
    (home / "bus.lock").symlink_to(home.parent / "elsewhere")


@pytest.mark.parametrize(
    ("prepare", "code"),
    [
        (a_file, "home_unsafe"),
        (below_a_file, "home_unsafe"),
        (a_linked_log, "file_unsafe"),
        (a_linked_lock, "home_unsafe"),
    ],
)
def test_an_unusable_home_gives_a_one_line_error(tmp_path: Path, prepare: Callable[[Path], None], code: str) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    prepare(parent / "weave")
    ended = redkey(parent / "weave", "serve", "--port", "0")
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    assert f"[{code}]" in ended.stderr


def test_the_error_without_a_bus_says_how_to_start_one(tmp_path: Path) -> None:
    ended = redkey(tmp_path / "weave", "sessions")
    assert ended.returncode == 1
    assert "start one with redkey bus serve" in ended.stderr
    assert "[no_bus]" in ended.stderr
    with BusClient(tmp_path / "weave", reconnect_seconds=0) as client, pytest.raises(BusLost, match="redkey bus serve"):
        client.sessions()


def test_the_bus_of_the_server_of_redkey_toml_is_found_and_a_dead_one_is_not(tmp_path: Path) -> None:
    """`redkey task list` asks the same server. A killed server leaves its socket, on which nothing listens."""
    (tmp_path / "redkey.toml").write_text('data = "data"\n')
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    own, served = tmp_path / ".weave", tmp_path / "data" / "bus"
    with serving(tmp_path) as server:
        created = redkey(tmp_path, "sessions", "--create", "release", "-q", where=tmp_path)
        assert (created.returncode, created.stderr) == (0, "")
        with BusClient(served) as bus:
            assert [(one.id, one.name) for one in bus.sessions()] == [(created.stdout.strip(), "release")]
        named = redkey(tmp_path, "sessions", "--data", str(tmp_path / "data"), "-q", where=elsewhere)
        assert named.stdout == created.stdout
        assert f"no bus answers at {own / 'coord.sock'}" in redkey(tmp_path, "sessions", where=elsewhere).stderr
        server.stop(signal.SIGKILL)
    assert (served / "coord.sock").is_socket()
    alone = redkey(tmp_path, "sessions", where=tmp_path)
    assert alone.returncode == 1
    assert f"no bus answers at {served / 'coord.sock'}: Connection refused" in alone.stderr
    with BusProcess(own):
        assert (found := redkey(tmp_path, "sessions", where=tmp_path)).returncode == 0, found.stderr


@pytest.mark.parametrize("arguments", [("sessions",), ("send", "all", "hello"), ("tail",), ("agents",), ("chat",)])
def test_a_bus_is_named_once(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, ["bus", *arguments, "--home", str(tmp_path), "--data", str(tmp_path)])
    assert (result.exit_code, "--home and --data both name a bus; leave one out" in result.output) == (2, True)


def test_the_variable_and_the_note_of_another_host_name_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_home({}) == Path("~/.weave").expanduser()
    served = tmp_path / "data" / "bus"
    note_host(served, "http://127.0.0.1:9")
    assert find_home({"REDKEY_DATA": str(tmp_path / "data")}) == served
    assert find_home({"REDKEY_DATA": str(tmp_path / "data"), "WEAVE_HOME": "/elsewhere"}) == Path("/elsewhere")


def test_a_session_is_created_on_first_use(running: Running) -> None:
    ended = redkey(running.home, "send", "nobody", "hello")
    assert "no agent of the session has the id or name 'nobody'" in ended.stderr
    with BusClient(running.home) as ann, BusClient(running.home) as bob:
        session = ann.open_session()
        assert bob.open_session() == session
        assert [(one.id, one.name, one.policy) for one in ann.sessions()] == [(session, "main", "guarded")]
        assert ann.open_session("another") != session
        ann.close_session(session)
        assert ann.open_session() != session


def test_a_session_is_created_on_first_use_by_http_and_health_needs_no_token(home: Path) -> None:
    with BusProcess(home) as bus:
        ask = Caller(bus)
        status, first = ask("POST", "/sessions", {"name": "main", "policy": "guarded", "reuse": True})
        assert (status, first["policy"]) == (201, "guarded")
        assert ask("POST", "/sessions", {"name": "main", "reuse": True}) == (200, first)
        with BusClient(home) as client:
            assert client.open_session() == first["id"]
        assert ask("GET", "/health", Authorization="") == (200, {"status": "ok"})
        assert ask("GET", "/sessions", Authorization="")[1]["code"] == "unauthenticated"
        assert ask("GET", "/health", Authorization="", Host="evil.example")[1]["code"] == "host_refused"
