"""`redkey login` and `redkey logout`: the real command, a browser by hand, and processes that share a login."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.harness.person import Browser, hidden_fields
from tests.harness.server import PATIENCE_SECONDS, Server, serving

pytestmark = pytest.mark.xdist_group("login_command")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("login")) as running:
        yield running


def _environment(home: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
    return {**clean, "XDG_CONFIG_HOME": str(home), "BROWSER": "true"}


def _run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "redkey", *arguments]
    return subprocess.run(
        command, env=_environment(home), cwd=home, capture_output=True, text=True, check=False, timeout=120
    )


def _log_in(server: Server, home: Path, email: str) -> tuple[str, dict[str, str]]:
    """Invite a person and log in as them; the person's id, and what the command printed."""
    with server.client() as admin:
        person = admin.post(f"/workspaces/{server.workspace_id}/people", {"email": email}).json
    command = [sys.executable, "-m", "redkey", "login", server.url, "--no-browser", "--json"]
    with subprocess.Popen(
        command, env=_environment(home), cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        address = next(line.strip() for line in process.stderr if line.strip().startswith("http"))
        callback = re.search(r"redirect_uri=http%3A%2F%2F127.0.0.1%3A(\d+)", address)
        assert callback is not None
        # Another program that finds the port does not end the wait.
        forged = httpx2.get(f"http://127.0.0.1:{callback[1]}/callback?code=x&state=wrong", timeout=60)
        assert forged.status_code == 404
        browser = Browser()
        page = browser.get(address)
        form = {**hidden_fields(page.text), "email": email, "code": person["loginCode"], "action": "allow"}
        sent = browser.post(f"{server.url}/oauth/authorize", form)
        assert browser.get(sent.headers["location"]).status_code == 200
        said = json.loads(process.stdout.read())
        assert process.wait(PATIENCE_SECONDS) == 0
    return person["personId"], said


def test_a_person_logs_in_works_and_logs_out(server: Server, tmp_path: Path) -> None:
    person_id, said = _log_in(server, tmp_path, "ada@example.com")
    file = Path(said["file"])
    assert (said["url"], said["scope"], file.stat().st_mode & 0o777) == (server.url, "produce", 0o600)
    # No key and no address are given: the last login is meant.
    made = _run(tmp_path, "queue", "create", "mine", "--json")
    assert made.returncode == 0, made.stderr
    with server.client() as admin:
        event = admin.get(f"/events/{json.loads(made.stdout)['eventId']}").json
    assert event["actor"]["id"] == person_id
    # The access token has run out: it is renewed, and the refresh token with it.
    kept = json.loads(file.read_text())
    tokens = kept["logins"][server.url]
    kept["logins"][server.url] = {**tokens, "expiresAt": time.time() - 1}
    file.write_text(json.dumps(kept))
    assert _run(tmp_path, "queue", "list").returncode == 0
    assert json.loads(file.read_text())["logins"][server.url]["refreshToken"] != tokens["refreshToken"]
    ended = _run(tmp_path, "logout")
    assert (ended.returncode, ended.stdout.strip()) == (0, f"logged out at {server.url}")
    with server.client() as admin:
        people = admin.get(f"/workspaces/{server.workspace_id}/people").json["items"]
    assert [one.get("sessions", []) for one in people if one["personId"] == person_id] == [[]]
    refused = _run(tmp_path, "queue", "list")
    assert refused.returncode == 1
    assert "redkey login" in refused.stderr
    assert _run(tmp_path, "logout").returncode == 1


def test_processes_that_renew_at_once_share_one_login(server: Server, tmp_path: Path) -> None:
    _, said = _log_in(server, tmp_path, "bob@example.com")
    file = Path(said["file"])
    kept = json.loads(file.read_text())
    kept["logins"][server.url]["expiresAt"] = 0
    file.write_text(json.dumps(kept))
    command = [sys.executable, "-m", "redkey", "queue", "list"]
    both = [
        subprocess.Popen(command, env=_environment(tmp_path), cwd=tmp_path, stdout=subprocess.DEVNULL) for _ in range(3)
    ]
    assert [one.wait(120) for one in both] == [0, 0, 0]
    assert _run(tmp_path, "queue", "list").returncode == 0


def test_a_login_that_an_admin_ended_says_so(server: Server, tmp_path: Path) -> None:
    person_id, said = _log_in(server, tmp_path, "eve@example.com")
    with server.client() as admin:
        assert admin.delete(f"/workspaces/{server.workspace_id}/people/{person_id}").status == 200
    file = Path(said["file"])
    kept = json.loads(file.read_text())
    kept["logins"][server.url]["expiresAt"] = 0
    file.write_text(json.dumps(kept))
    refused = _run(tmp_path, "queue", "list")
    assert refused.returncode == 1
    assert f"redkey login {server.url}" in refused.stderr


@pytest.mark.parametrize("url", ["ftp://x", "https://u@x", "https://x?y"])
def test_what_is_no_server_is_refused(tmp_path: Path, url: str) -> None:
    assert _run(tmp_path, "login", url).returncode == 2
