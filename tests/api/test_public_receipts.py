"""Receipts that anyone with the link may open, if the workspace allows it, and only then."""

from __future__ import annotations

from redkey.ledger.verify import Policy, verify_receipt
from tests.api.conftest import Workspace
from tests.api.test_receipt_replies import log_key
from tests.harness.server import Server
from tests.harness.stranger import Stranger


def test_a_link_opens_without_a_key_where_the_workspace_allows_it(server: Server, workspace: Workspace) -> None:
    owner, nobody = Stranger(server.url, str(workspace.admin.key)), Stranger(server.url)
    event_id = owner.ok("POST", "/queues", {"name": "q"})["eventId"]
    path = f"/receipts/{event_id}"
    policy = f"/workspaces/{workspace.workspace_id}/policy"
    assert owner.ok("GET", policy)["receipts"] == {"public": False}
    closed = nobody("GET", path)
    assert (closed.status, closed.json["code"]) == (401, "unauthenticated")
    assert closed.headers["www-authenticate"].startswith("Bearer")
    browser = {"accept": "text/html"}
    assert nobody("GET", path, headers=browser).headers["www-authenticate"].startswith("Basic")
    changed = owner.ok("PATCH", policy, {"receipts": {"public": True}})
    assert (changed["receipts"], changed["eventId"][:4]) == ({"public": True}, "evt_")
    opened = nobody("GET", path)
    assert opened.status == 200, opened.text
    assert opened.json == owner.ok("GET", path)
    assert opened.json["verification"]["receiptUrl"].endswith(path)
    assert verify_receipt(opened.body, Policy(keys=(log_key(workspace),))).holds("integrity", "signed")
    page = nobody("GET", path, headers=browser)
    assert page.headers["content-type"].startswith("text/html")
    assert event_id in page.text
    # Nothing else opens: not the same event elsewhere, not what does not exist, not with a wrong key.
    for other in (f"/events/{event_id}", f"/events/{event_id}/receipt", "/receipts/evt_01JTMX9A2B3C4D5E6F7G8H9JKM"):
        assert nobody("GET", other).status == 401, other
    assert Stranger(server.url, "rk_nobody1_" + "0" * 24)("GET", path).json["code"] == "invalid_token"
    owner.ok("PATCH", policy, {"receipts": {"public": False}})
    assert nobody("GET", path).status == 401


def test_links_of_one_workspace_open_nothing_of_another(server: Server, workspace: Workspace, other: Workspace) -> None:
    owner, nobody = Stranger(server.url, str(workspace.admin.key)), Stranger(server.url)
    owner.ok("PATCH", f"/workspaces/{workspace.workspace_id}/policy", {"receipts": {"public": True}})
    theirs = Stranger(server.url, str(other.admin.key)).ok("POST", "/queues", {"name": "q"})["eventId"]
    assert nobody("GET", f"/receipts/{theirs}").status == 401
    assert owner("GET", f"/receipts/{theirs}").status == 404


def test_a_key_of_another_workspace_sees_what_everybody_sees_and_nothing_more(
    server: Server, workspace: Workspace, other: Workspace
) -> None:
    owner, reader = Stranger(server.url, str(workspace.admin.key)), Stranger(server.url, str(other.admin.key))
    event_id = owner.ok("POST", "/queues", {"name": "q"})["eventId"]
    path, policy = f"/receipts/{event_id}", f"/workspaces/{workspace.workspace_id}/policy"
    assert (reader("GET", path).status, reader("GET", path).json["code"]) == (404, "event_not_found")
    owner.ok("PATCH", policy, {"receipts": {"public": True}})
    assert reader.ok("GET", path) == owner.ok("GET", path)
    assert reader("GET", f"/events/{event_id}").status == 404
    owner.ok("PATCH", policy, {"receipts": {"public": False}})
    assert reader("GET", path).status == 404
