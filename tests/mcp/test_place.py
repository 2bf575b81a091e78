"""Which server a directory means: worktrees share one, and what a checkout brought along decides nothing."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from redkey.config import DEFAULT_PORT
from redkey.errors import ConfigRefused
from redkey.mcp.hooks import answer
from redkey.mcp.place import check_own, find_place, project_name, project_root, start_server
from redkey.mcp.prompts import PLAN
from redkey.mcp.slots import slots_in_use, take_slot
from tests.harness.ports import lasting_port

GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


def git(directory: Path, *words: str) -> None:
    command = ["git", "-c", "init.defaultBranch=main", *words]
    subprocess.run(command, cwd=directory, env={**os.environ, **GIT}, check=True, capture_output=True)


def credentials(data: Path, url: str = "http://127.0.0.1:1", mode: int = 0o600) -> Path:
    data.mkdir(mode=0o700, exist_ok=True)
    file = data / "credentials.json"
    file.write_text(json.dumps({"url": url, "uds": None, "workspaceId": "wk_1", "apiKey": "rk_a_b"}))
    file.chmod(mode)
    return file


def test_worktrees_of_a_repository_are_one_project(tmp_path: Path) -> None:
    first = tmp_path / "shop"
    first.mkdir()
    git(first, "init")
    git(first, "commit", "--allow-empty", "-m", "one")
    git(first, "worktree", "add", str(tmp_path / "other"))
    inside = tmp_path / "other" / "src"
    inside.mkdir()
    assert project_root(inside) == project_root(first) == first
    assert project_name(inside) == "shop"
    assert project_root(tmp_path) == tmp_path


def test_a_file_that_only_looks_like_a_worktree_leads_nowhere(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    git(mine, "init")
    git(mine, "commit", "--allow-empty", "-m", "one")
    git(mine, "worktree", "add", str(tmp_path / "real"))
    (theirs / ".git").write_text(f"gitdir: {mine}/.git/worktrees/real\n")
    assert project_root(theirs) == theirs


def test_credentials_that_may_have_come_with_the_checkout_are_not_used(tmp_path: Path) -> None:
    data = tmp_path / ".redkey"
    credentials(data, mode=0o644)
    with pytest.raises(ConfigRefused) as refused:
        find_place(tmp_path, {})
    assert refused.value.code == "credentials_not_own"
    assert "REDKEY_DATA" in refused.value.message


def test_a_server_elsewhere_is_named_by_hand_or_not_at_all(tmp_path: Path) -> None:
    credentials(tmp_path / ".redkey", "https://evil.example")
    with pytest.raises(ConfigRefused) as refused:
        find_place(tmp_path, {})
    assert "not on this machine" in refused.value.message
    check_own(tmp_path / "no-such-directory")


def test_without_a_server_the_next_step_is_named(tmp_path: Path) -> None:
    credentials(tmp_path / ".redkey")
    with pytest.raises(ConfigRefused) as refused:
        find_place(tmp_path, {}, start=False)
    assert "redkey serve --data" in refused.value.message
    with pytest.raises(ConfigRefused):
        find_place(tmp_path, {"REDKEY_URL": "http://127.0.0.1:1", "REDKEY_DATA": str(tmp_path / "none")})


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[None]:
    """Ends the servers that the test started."""
    yield
    for ready in tmp_path.glob("*/serve.json"):
        process = os.pidfd_open(json.loads(ready.read_text())["pid"])
        signal.pidfd_send_signal(process, signal.SIGTERM)
        select.select([process], [], [], 60)
        os.close(process)


@pytest.mark.usefixtures("ended")
def test_servers_that_start_at_the_same_time_do_not_need_the_same_port(tmp_path: Path) -> None:
    """Both find it free, one of them gets it, and the other gets another one."""
    port = lasting_port()
    places = [tmp_path / name for name in "ab"]
    for data in places:
        credentials(data, f"http://127.0.0.1:{port}")
    with ThreadPoolExecutor() as threads:
        urls = {started.url for started in threads.map(start_server, places)}
    assert len(urls) == 2
    assert f"http://127.0.0.1:{port}" in urls


@pytest.mark.usefixtures("ended")
def test_a_server_starts_beside_another_one_on_the_default_port(tmp_path: Path) -> None:
    with socket.socket() as holder:
        with suppress(OSError):
            # If this fails, another program holds the port, which is as good.
            holder.bind(("127.0.0.1", DEFAULT_PORT))
            holder.listen()
        started = start_server(tmp_path / "data")
    assert urlsplit(started.url).port not in (None, DEFAULT_PORT)


def test_the_plan_of_the_prompt_is_valid(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    command = [sys.executable, "-m", "redkey", "plan", "validate", "plan.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_slots_are_taken_in_order_and_taken_over(tmp_path: Path) -> None:
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    first, second = (take_slot(environment, "data:x", "Claude Code", "shop") for _ in range(2))
    assert (first.name, second.name) == ("claude-code@shop", "claude-code-2@shop")
    first.kept.api_key, first.kept.pid = "rk_secret_key", os.getpid()
    first.save()
    assert [slot.name for slot in slots_in_use(environment)] == ["claude-code@shop"]
    file = next(tmp_path.glob("redkey/agents/*/claude-code@shop.json"))
    assert file.stat().st_mode & 0o077 == 0
    assert "secret" not in repr(first.kept)
    first.leave()
    assert list(slots_in_use(environment)) == []
    again = take_slot(environment, "data:x", "Claude Code", "shop")
    assert (again.name, again.kept.api_key) == ("claude-code@shop", "rk_secret_key")
    elsewhere = take_slot(environment, "data:y", "Claude Code", "shop")
    assert (elsewhere.name, elsewhere.kept.api_key) == ("claude-code@shop", ""), "a key is for one server"
    for slot in (second, again, elsewhere):
        slot.leave()


def test_a_hook_outside_of_a_session_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert [answer(event) for event in ("session-start", "prompt", "session-end")] == ["", "", ""]
