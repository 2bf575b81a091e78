"""The demo ends by itself and shows what it promises; however it ends, nothing of it stays."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.docs.pages import Reader

DEMO = [sys.executable, "-m", "redkey", "demo"]
PATIENCE_SECONDS = 120

# A demo is fourteen processes: two at once are too much for two cores.
pytestmark = pytest.mark.xdist_group("demo")


def _environment(place: Path) -> dict[str, str]:
    """An empty home, and a temporary directory of its own, by which its processes are known."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
    return {**clean, "HOME": str(place), "TMPDIR": str(place), "TERM": "xterm-256color"}


def _left_behind(place: Path) -> list[str]:
    """The processes that still have the place in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and f"TMPDIR={place}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def _wait_until_gone(place: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left := _left_behind(place):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """One whole performance, as JSON lines."""
    place = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [*DEMO, "--json"],
        env=_environment(place),
        cwd=place,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(place.glob("redkey-demo-*")) == []
    assert _left_behind(place) == []
    return [json.loads(line) for line in done.stdout.splitlines()]


def _kinds(told: list[dict[str, object]]) -> list[object]:
    return [one["kind"] for one in told]


def test_all_episodes_are_finished_and_approved(told: list[dict[str, object]]) -> None:
    assert _kinds(told).count("finished") == 6
    assert _kinds(told).count("approved") == 6
    assert _kinds(told).count("done") == 24


def test_races_are_lost_and_the_misses_are_on_the_ledger(told: list[dict[str, object]]) -> None:
    scores = next(one for one in told if one["kind"] == "scores")
    agents = scores["agents"]
    assert isinstance(agents, list)
    assert len(agents) == 12
    assert sum(one["missed"] for one in agents) == _kinds(told).count("missed") > 0
    assert sum(one["won"] for one in agents) == 25


def test_a_killed_agents_task_moves_on_when_its_lease_has_run_out(told: list[dict[str, object]]) -> None:
    kinds = _kinds(told)
    assert [kinds.count(kind) for kind in ("killed", "expired", "moved")] == [1, 1, 1]
    assert kinds.index("killed") < kinds.index("expired") < kinds.index("moved")


def test_a_receipt_is_verified_and_its_forgery_refused(told: list[dict[str, object]]) -> None:
    assert told[-1] == {"kind": "proof", "verified": True, "tamperedRefused": True}


def test_on_a_terminal_it_draws_and_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        DEMO, env=_environment(tmp_path), cwd=tmp_path, stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "✓".encode() + b" " not in seen.partition(b"0 done")[2]:
        assert time.monotonic() < deadline, seen[-2000:]
        seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    while chunk := _read(ours):
        seen += chunk
    assert process.wait(PATIENCE_SECONDS) == 130
    assert b"nothing is left behind" in seen
    assert "● at work".encode() in seen
    _wait_until_gone(tmp_path)
    assert list(tmp_path.glob("redkey-demo-*")) == []


def _read(terminal: int) -> bytes:
    """What is still to read; nothing when the other end is closed."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        os.close(terminal)
        return b""


def test_when_the_demo_itself_is_killed_its_processes_go_too(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*DEMO, "--json", "--agents", "2"], env=_environment(tmp_path), cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["kind"] == "won":
            break
    assert len(_left_behind(tmp_path)) > 8
    process.kill()
    process.wait()
    process.stdout.close()
    _wait_until_gone(tmp_path)


def test_so_many_agents_as_one_asks_for_and_no_fewer_than_two() -> None:
    done = subprocess.run([*DEMO, "--agents", "1"], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 2
    assert "2<=x<=6" in done.stderr


def test_what_now_can_be_pasted_where_the_command_is_not_on_the_path(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "redkey"
    code = "import sys; from redkey.cli.demo.voices import what_now; sys.argv = sys.argv[1:]; print(what_now())"
    said = subprocess.run(
        [sys.executable, "-c", code, str(program)],
        env={**os.environ, "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    ).stdout
    serve, *others = [line.strip() for line in said.splitlines() if line.startswith("  ")]
    assert serve == f"{program} serve"
    assert len(others) == 2
    page = tmp_path / "now.md"
    page.write_text(f"```sh background\n{serve}\n```\n\n```sh\n{chr(10).join(others)}\n```\n")
    reader = Reader(tmp_path)
    try:
        assert reader.follow(page) == 2
    finally:
        reader.leave()
