"""Who may come in: by key, by link, with which rights, and until when."""

from __future__ import annotations

import subprocess
import sys

import httpx2 as httpx
import pytest

from redkey.client import RedKey
from tests.harness.server import Server
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
    tab.page.get_by_label("Look only").check()
    tab.page.get_by_role("button", name="Open the Studio").click()
    tab.page.get_by_text("live", exact=True).wait_for()
    assert tab.page.get_by_role("button", name="New task").count() == 0
    tab.go("access")
    tab.sees("this tab may read")
    tab.sees("Keys and webhooks are shown to keys with the scope admin.")


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
    tab.page.get_by_role("button", name="Log in").click()
    tab.sees("A key looks like rk_ID_SECRET")
    tab.page.fill("input[name=key]", server.key[:-1] + ("A" if server.key[-1] != "A" else "B"))
    tab.page.get_by_role("button", name="Log in").click()
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


def test_the_page_works_below_a_prefix(open_tab: OpenTab, server: Server) -> None:
    with prefixed(server.url, "/tools/redkey") as url:
        tab = open_tab()
        tab.page.goto(f"{url}/")
        assert tab.page.url == f"{url}/studio/"
        tab.page.fill("input[name=key]", server.key)
        tab.page.get_by_role("button", name="Log in").click()
        tab.page.get_by_text("live", exact=True).wait_for()
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
