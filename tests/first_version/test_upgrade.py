"""Upgrading: a server of today serves a data directory of the first version, and its owner goes on working in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from redkey.cli import main
from redkey.client import Claimed, Conflict, RedKey
from tests.first_version.archive import unpacked
from tests.harness.server import serving
from tests.harness.workshop import checked


def test_a_data_directory_of_the_first_version_is_served_and_upgraded(tmp_path: Path) -> None:
    folder = unpacked(tmp_path)
    data = folder / "data"
    # The archive came without its owner's key; this step also leaves the credentials that a server needs.
    recovered = CliRunner().invoke(main, ["key", "recover", str(data), "--json"])
    assert recovered.exit_code == 0, recovered.output
    key = str(json.loads(recovered.stdout)["apiKey"])
    with serving(folder) as server, RedKey(server.url, key) as rk:
        assert rk.server.ready().status == "ready"
        workspace = next(iter(rk.workspaces.list(own=True))).workspace_id
        assert rk.workspaces.policy(workspace).rules == 1
        rk.queues.create("upgrade")
        agent = rk.agents.register(card={"name": "upgrader", "version": "1"}).agent_id
        created = rk.tasks.create("upgrade", title="After the upgrade")
        with pytest.raises(Conflict) as refused:
            rk.tasks.create("upgrade", title="New", retry={"delaySeconds": 5})
        assert refused.value.code == "rules_too_old"
        claimed = rk.queues.claim_next("upgrade", agent)
        assert isinstance(claimed, Claimed)
        rk.claims.complete(claimed.claim_id, output="done")
        assert created.result(timeout=60) == "done"
        rk.workspaces.raise_rules(workspace, 2)
        rk.tasks.create("upgrade", title="New", retry={"delaySeconds": 5, "maxAttempts": 2})
        assert server.stop() == 0
    report = checked(data, [])
    assert report.clean, report.faults
