"""A server or workspace always keeps a key: only operators revoke operator keys, and the last key cannot be revoked."""

from __future__ import annotations

from typing import Any

from tests.api.conftest import Workspace
from tests.harness.client import Client
from tests.harness.server import Server


def keys_of(server: Server) -> str:
    return f"/workspaces/{server.workspace_id}/api-keys"


def operator_key_id(operator: Client, server: Server) -> str:
    """Return the id of the key with which the server was started."""
    listed = operator.get(keys_of(server)).json["items"]
    found: str = next(one["keyId"] for one in listed if server.key.startswith(one["prefix"] + "_"))
    return found


def test_an_admin_cannot_revoke_an_operators_key(server: Server, operator: Client) -> None:
    key_id = operator_key_id(operator, server)
    admin_key = operator.post(keys_of(server), {"scopes": ["admin"]}).json
    with server.client(admin_key["apiKey"]) as admin:
        refused = admin.delete(f"{keys_of(server)}/{key_id}")
        assert (refused.status, refused.json["code"]) == (403, "insufficient_scope")
    assert operator.get("/workspaces").status == 200
    operator.delete(f"{keys_of(server)}/{admin_key['keyId']}")


def test_the_last_operator_key_cannot_revoke_itself(start: Any) -> None:
    server: Server = start()
    with server.client() as operator:
        key_id = operator_key_id(operator, server)
        # Admin keys and the operator keys of others do not help: only another operator key of this workspace counts.
        operator.post(keys_of(server), {"scopes": ["admin"]})
        refused = operator.delete(f"{keys_of(server)}/{key_id}")
        assert (refused.status, refused.json["code"]) == (409, "last_operator_key")
        second = operator.post(keys_of(server), {"scopes": ["operator"]}).json
        assert operator.delete(f"{keys_of(server)}/{key_id}").status == 200
        assert operator.get("/workspaces").status == 401
    with server.client(second["apiKey"]) as successor:
        refused = successor.delete(f"{keys_of(server)}/{second['keyId']}")
        assert (refused.status, refused.json["code"]) == (409, "last_operator_key")
        assert successor.get("/workspaces").status == 200


def test_an_operator_of_another_workspace_may_revoke_an_operators_key(start: Any) -> None:
    server: Server = start()
    with server.client() as first:
        key_id = operator_key_id(first, server)
        elsewhere = first.post("/workspaces", {}).json["workspaceId"]
        second = first.post(f"/workspaces/{elsewhere}/api-keys", {"scopes": ["operator"]}).json
        with server.client(second["apiKey"]) as other:
            # The caller's own key stays, so the server keeps an operator.
            assert other.delete(f"{keys_of(server)}/{key_id}").status == 200
            assert first.get("/workspaces").status == 401
            refused = other.delete(f"/workspaces/{elsewhere}/api-keys/{second['keyId']}")
            assert (refused.status, refused.json["code"]) == (409, "last_operator_key")


def test_the_last_admin_key_of_a_workspace_stays_unless_an_operator_ends_it(
    workspace: Workspace, operator: Client
) -> None:
    path = f"/workspaces/{workspace.workspace_id}/api-keys"
    (own,) = workspace.admin.get(path).json["items"]
    workspace.key("produce")
    refused = workspace.admin.delete(f"{path}/{own['keyId']}")
    assert (refused.status, refused.json["code"]) == (409, "last_admin_key")
    assert workspace.admin.get("/queues").status == 200
    # The operator can make new keys there, so nobody is locked out.
    assert operator.delete(f"{path}/{own['keyId']}").status == 200
    assert workspace.admin.get("/queues").status == 401
    assert operator.post(path, {"scopes": ["admin"]}).status == 201
