"""`redkey key recover`: a new key from the data directory alone, on the record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.commands.draft import Draft
from redkey.readmodel.world_loading import load_world
from redkey.services.log_facts import workspace_of
from redkey.services.unit_of_work import TopicWork
from redkey.stores.ids import SystemIds
from redkey.stores.sqlite import SqliteStore
from redkey.wire.events import KeyRevoked
from tests.harness.client import Client
from tests.harness.server import serving
from tests.harness.workshop import checked


def redkey(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def locked_out(tmp_path: Path) -> Path:
    """A directory with a served data directory whose every key is revoked, as earlier versions allowed."""
    with serving(tmp_path) as server, server.client() as operator:
        operator.post("/workspaces", {"name": "tenant"})
        assert server.stop() == 0
    ids = SystemIds()
    with SqliteStore(tmp_path / "data", create=False) as store:
        for topic in store.topics():
            world = load_world(store, topic)
            where = f"workspace:{world.workspace.workspace_id}"
            with store.write(topic) as unit:
                work = TopicWork(unit, topic, world, ids)
                work.note([Draft(KeyRevoked(key_id=key_id), where, where) for key_id in world.keys])
                work.finish()
    return tmp_path


def test_a_recovered_operator_key_opens_the_server_again(locked_out: Path) -> None:
    data = locked_out / "data"
    dead = json.loads((data / "credentials.json").read_text())["apiKey"]
    with serving(locked_out) as server, Client(server.url, dead) as caller:
        assert caller.get("/workspaces").status == 401
        # A server may be running on the data directory, and takes the key at once.
        result = redkey("key", "recover", data, "--json")
        assert result.exit_code == 0, result.output
        recovered = json.loads(result.output)
        assert recovered["scopes"] == ["operator", "admin"]
        with Client(server.url, recovered["apiKey"]) as operator:
            assert len(operator.get("/workspaces").json["items"]) == 2
            events = operator.get("/ledger/query?type=key.recovered").json["items"]
            assert [one["data"]["keyId"] for one in events] == [recovered["keyId"]]
            assert events[0]["data"]["scopes"] == ["operator", "admin"]
        assert server.stop() == 0
    # The command line finds the key where it found the first one.
    assert json.loads((data / "credentials.json").read_text())["apiKey"] == recovered["apiKey"]
    assert checked(data).clean


def test_an_admin_key_of_a_named_workspace_is_recovered(locked_out: Path) -> None:
    data = locked_out / "data"
    with SqliteStore(data, create=False) as store:
        first, second = (workspace_of(store, topic) for topic in store.topics())
    result = redkey("key", "recover", data, "--workspace", second)
    assert result.exit_code == 0, result.output
    key = next(line.strip() for line in result.output.splitlines() if line.strip().startswith("rk_"))
    with serving(locked_out) as server, Client(server.url, key) as admin:
        assert [one["workspaceId"] for one in admin.get("/workspaces").json["items"]] == [second]
        assert admin.post("/queues", {"name": "again"}).status == 201
    # The credentials file is about the first workspace, whose key is still dead.
    assert json.loads((data / "credentials.json").read_text())["workspaceId"] == first
    assert json.loads((data / "credentials.json").read_text())["apiKey"] != key
    assert checked(data).clean


def test_where_nothing_can_be_recovered_the_command_says_why(tmp_path: Path, locked_out: Path) -> None:
    unknown = redkey("key", "recover", locked_out / "data", "--workspace", "wk_" + "0" * 26)
    assert unknown.exit_code == 1
    assert "workspace_missing" in unknown.output
    empty = tmp_path / "empty"
    SqliteStore(empty).close()
    nothing = redkey("key", "recover", empty)
    assert nothing.exit_code == 1
    assert "workspace_missing" in nothing.output
    assert "redkey serve" in nothing.output
    assert redkey("key", "recover", tmp_path / "missing").exit_code == 2
