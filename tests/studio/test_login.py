"""Who may come in: by key, by link, with which rights, and until when."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import httpx2 as httpx
import pytest

from redkey.client import RedKey
from tests.harness.server import PATIENCE_SECONDS, Server
from tests.studio.conftest import OpenTab, Tab
from tests.studio.proxy import prefixed


def _link(server: Server, key: str = "") -> str:
    made = httpx.post(f"{server.url}/login-codes", headers={"authorization": f"Bearer {key or server.key}"})
    assert made.status_code == 201
    return str(made.json()["url"])


def test_a_link_logs_in_once(open_tab: OpenTab, server: Server) -> None:
    link, first, second = _link(server), open_tab(), open_tab()
    first.page.goto(link)
    first.page.get_by_role("button", name="Open the Studio").click()
    first.page.get_by_text("live", exact=True).wait_for()
    assert "code" not in first.page.url
    second.page.goto(link)
    second.page.get_by_role("button", name="Open the Studio").click()
    second.sees("The login code is unknown, was used, or is older than ten minutes.")
    second.errors.clear()  # The browser writes of the 401 itself.


def test_a_tab_has_the_rights_that_were_chosen(open_tab: OpenTab, server: Server) -> None:
    tab = open_tab()
    tab.page.goto(_link(server))
    tab.page.get_by_label("View only").check()
    tab.page.get_by_role("button", name="Open the Studio").click()
    tab.page.get_by_text("live", exact=True).wait_for()
    assert tab.page.get_by_role("button", name="New task").count() == 0
    tab.go("access")
    tab.sees("this tab can: read")
    tab.sees("Only keys with the scope admin see keys and webhooks.")


def test_the_key_stays_in_the_tab(tab: Tab, server: Server) -> None:
    assert tab.page.evaluate("localStorage.length") == 0
    assert tab.page.evaluate("document.cookie") == ""
    assert server.key in tab.page.evaluate("sessionStorage.getItem('redkey.session')")
    tab.page.get_by_role("button", name="Log out").click()
    tab.sees("API key")
    assert tab.page.evaluate("sessionStorage.length") == 0


def test_a_wrong_key_is_refused_in_words(open_tab: OpenTab, server: Server) -> None:
    tab = open_tab()
    tab.page.goto(server.url)
    tab.page.fill("input[name=key]", "not a key")
    tab.page.get_by_role("button", name="Log in with the key").click()
    tab.sees("A key looks like rk_ID_SECRET")
    tab.page.fill("input[name=key]", server.key[:-1] + ("A" if server.key[-1] != "A" else "B"))
    tab.page.get_by_role("button", name="Log in with the key").click()
    tab.sees("not those of a live key")
    tab.errors.clear()  # The browser writes of the 401 itself.


def test_a_revoked_key_ends_the_session(open_tab: OpenTab, server: Server, rk: RedKey) -> None:
    key = rk.keys.create(server.workspace_id, scopes=["produce"])
    tab = open_tab().login(key.api_key)
    rk.keys.revoke(server.workspace_id, key.key_id)
    tab.sees("Your key was revoked or has expired")
    tab.errors.clear()  # The browser writes of the 401 itself.


def test_two_workspaces_do_not_mix(open_tab: OpenTab, server: Server, rk: RedKey) -> None:
    other = rk.workspaces.create(name="other")
    with RedKey(url=server.url, api_key=other.api_key) as theirs:
        queue = theirs.queues.create(name="theirs").queue_id
        theirs.tasks.create(queue, title="Only theirs")
        mine = rk.queues.create(name="mine").queue_id
        rk.tasks.create(mine, title="Only mine")
        first, second = open_tab().login(), open_tab().login(other.api_key)
        first.sees("Only mine")
        second.sees("Only theirs")
        assert first.page.get_by_text("Only theirs").count() == 0
        assert second.page.get_by_text("Only mine").count() == 0


def test_a_person_logs_in_by_the_login_page_and_out_again(open_tab: OpenTab, server: Server, rk: RedKey) -> None:
    person = rk.people.invite(server.workspace_id, "ada@example.com", scopes=["produce"])
    tab = open_tab()
    tab.page.goto(f"{server.url}/studio/#/queues")
    tab.page.get_by_role("button", name="Log in by e-mail").click()
    tab.sees("RedKey Studio asks to act for you")
    tab.page.get_by_role("button", name="Cancel").click()
    tab.sees("The person refused.")
    tab.page.get_by_role("button", name="Log in by e-mail").click()
    tab.page.get_by_label("E-mail address").fill("ada@example.com")
    tab.page.get_by_label("One-time code").fill(person.login_code)
    tab.page.get_by_role("button", name="Log in", exact=True).click()
    tab.page.get_by_text("live", exact=True).wait_for()
    # Back where the login began, and nothing of it is in the address.
    assert tab.page.url == f"{server.url}/studio/#/queues"
    assert tab.page.get_by_role("button", name="New task").count() == 1
    # The access token has run out: the page renews it by itself.
    tab.page.evaluate(
        "() => { const kept = JSON.parse(sessionStorage.getItem('redkey.session'));"
        " sessionStorage.setItem('redkey.session', JSON.stringify({...kept, key: 'x.y.z', expiresAt: 0})) }"
    )
    tab.page.reload()
    tab.page.get_by_text("live", exact=True).wait_for()
    [found] = [one for one in rk.people.list(server.workspace_id) if one.person_id == person.person_id]
    assert [one.client_name for one in found.sessions] == ["RedKey Studio"]
    with tab.page.expect_response("**/oauth/revoke"):
        tab.page.get_by_role("button", name="Log out").click()
    tab.sees("API key")
    [found] = [one for one in rk.people.list(server.workspace_id) if one.person_id == person.person_id]
    assert found.sessions == ()


def test_the_page_works_below_a_prefix(open_tab: OpenTab, server: Server) -> None:
    with prefixed(server.url, "/tools/redkey") as url:
        tab = open_tab()
        tab.page.goto(f"{url}/")
        assert tab.page.url == f"{url}/studio/"
        tab.page.fill("input[name=key]", server.key)
        tab.page.get_by_role("button", name="Log in with the key").click()
        tab.page.get_by_text("live", exact=True).wait_for()
        # The page reads its other parts when the browser is idle: leave it before the proxy goes.
        tab.page.goto("about:blank")
        assert [one for one in tab.foreign if not one.startswith(url)] == []
        tab.foreign.clear()


@pytest.mark.parametrize("path", ["/studio/nothing.js", "/studio/../app.py", "/studio/files/"])
def test_there_is_nothing_beside_the_files(server: Server, path: str) -> None:
    found = httpx.get(server.url + path)
    assert found.status_code == 404
    assert found.json()["code"] == "path_not_found"


def test_files_have_their_headers(server: Server) -> None:
    page = httpx.get(f"{server.url}/studio/")
    assert "require-trusted-types-for 'script'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-cache"
    again = httpx.get(f"{server.url}/studio/", headers={"if-none-match": page.headers["etag"]})
    assert again.status_code == 304
    script = page.text.partition('src="./')[2].partition('"')[0]
    found = httpx.get(f"{server.url}/studio/{script}")
    assert "immutable" in found.headers["cache-control"]
    assert httpx.post(f"{server.url}/studio/").status_code == 405
    assert httpx.get(f"{server.url}/", follow_redirects=False).headers["location"] == "studio/"


def test_a_token_makes_no_link(server: Server) -> None:
    code = _link(server).partition("#code=")[2]
    token = httpx.post(f"{server.url}/login-codes/exchange", json={"code": code}).json()["accessToken"]
    refused = httpx.post(f"{server.url}/login-codes", headers={"authorization": f"Bearer {token}"})
    assert (refused.status_code, refused.json()["code"]) == (403, "key_required")


def test_a_code_gives_no_more_than_its_key_has(server: Server, rk: RedKey) -> None:
    key = rk.keys.create(server.workspace_id, scopes=["read"]).api_key
    code = _link(server, key).partition("#code=")[2]
    refused = httpx.post(f"{server.url}/login-codes/exchange", json={"code": code, "scope": "admin"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_scope")


def test_the_command_prints_a_link_that_logs_in(server: Server) -> None:
    command = [sys.executable, "-m", "redkey", "studio", "--data", str(server.data)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    page, _, code = said.partition("#code=")
    assert page == f"{server.url}/studio/"
    found = httpx.post(f"{server.url}/login-codes/exchange", json={"code": code, "scope": "read"})
    assert found.json()["scopes"] == ["read"]


def test_a_server_at_a_terminal_prints_a_link_that_logs_in(tmp_path: Path) -> None:
    """A terminal, not a file: logs are kept, and a link in them would be a key for others."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "redkey", "serve", "--data", str(tmp_path / "data"), "--port", "0"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=clean)
    os.close(theirs)
    try:
        shown, until = "", time.monotonic() + PATIENCE_SECONDS
        while not (link := re.search(r"(http://127\.0\.0\.1:\d+)/studio/#code=([\w-]+)\s", shown)):
            assert time.monotonic() < until, shown
            if select.select([ours], [], [], 1)[0]:
                shown += os.read(ours, 4096).decode(errors="replace")
        exchange, code = f"{link[1]}/login-codes/exchange", {"code": link[2], "scope": "read"}
        found = httpx.post(exchange, json=code, timeout=60)
        assert found.json()["scopes"] == ["read"]
        assert httpx.post(exchange, json=code, timeout=60).status_code == 401
    finally:
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
        os.close(ours)
