"""Receipts over HTTP: their contents, and that others can verify them without the server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.note import parse_key
from redkey.ledger.proof import parse_proof
from redkey.ledger.receipt import read_extra
from redkey.ledger.trust import TrustedKey
from redkey.ledger.verify import Policy, verify_receipt, verify_record_proof
from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, register


@pytest.fixture
def claimed(workspace: Workspace) -> dict[str, Any]:
    begin_queue(workspace.admin)
    agent_id = register(workspace.admin)["agentId"]
    return claim(workspace.admin, create_task(workspace.admin), agent_id)


def log_key(workspace: Workspace) -> TrustedKey:
    """Return the log's public key, as an operator publishes it."""
    directory = workspace.server.data / "keys"
    return TrustedKey(parse_key((directory / "signer-0001.pub").read_text()))


def test_a_receipt_is_verified_as_soon_as_it_is_asked_for(workspace: Workspace, claimed: dict[str, Any]) -> None:
    event_id = claimed["eventId"]
    receipt = workspace.admin.get(f"/events/{event_id}/receipt").json
    assert receipt["type"] == "task.claimed"
    assert receipt["actor"] == {"type": "agent", "id": claimed["agentId"]}
    assert receipt["subject"] == {"type": "task", "id": claimed["taskId"]}
    assert receipt["verification"] == {
        "status": "verified",
        "provider": "redkey",
        "receiptUrl": f"{workspace.server.url}/receipts/{event_id}",
    }
    assert receipt["effect"] == {"status": "applied"}
    assert receipt["levels"] == {"integrity": True, "signed": True, "witnessed": False, "anchored": False}
    assert "offline" not in receipt


def test_the_offline_receipt_convinces_a_stranger(workspace: Workspace, claimed: dict[str, Any]) -> None:
    policy = Policy(keys=(log_key(workspace),))
    for path in (f"/events/{claimed['eventId']}/receipt?format=proof", f"/receipts/{claimed['eventId']}"):
        data = workspace.admin.get(path).content
        verdict = verify_receipt(data, policy)
        assert verdict.holds("integrity", "signed"), verdict
        changed = data.replace(claimed["agentId"].encode(), b"agt_00000000000000000000000000")
        assert changed != data
        assert not verify_receipt(changed, policy).holds("integrity")


def test_the_command_line_verifies_what_was_fetched(
    workspace: Workspace, claimed: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "receipt.json"
    file.write_bytes(workspace.admin.get(f"/events/{claimed['eventId']}/receipt?format=proof").content)
    key = workspace.server.data / "keys" / "signer-0001.pub"
    command = [sys.executable, "-m", "redkey", "receipt", "verify", str(file), "--key", str(key)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_content_goes_along_when_it_is_asked_for(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    reply = workspace.admin.post("/queues/queue_q/tasks", {"title": "A title of its own"})
    path = f"/events/{reply.json['eventId']}/receipt?format=proof"
    assert "content" not in workspace.admin.get(path).json["offline"]
    data = workspace.admin.get(path + "&content=true").content
    assert len(json.loads(data)["offline"]["content"]) == 1
    assert verify_receipt(data, Policy(keys=(log_key(workspace),))).holds("integrity", "signed")


def test_the_proof_alone_comes_as_c2sp_text(workspace: Workspace, claimed: dict[str, Any]) -> None:
    reply = workspace.admin.get(f"/events/{claimed['eventId']}/receipt?format=tlog-proof")
    assert reply.media == "text/plain"
    proof = parse_proof(reply.content)
    verdict = verify_record_proof(proof, *read_extra(proof.extra), Policy(keys=(log_key(workspace),)))
    assert verdict.holds("integrity", "signed")


def test_the_page_escapes_and_runs_nothing(workspace: Workspace, claimed: dict[str, Any]) -> None:
    reply = workspace.admin.get(f"/receipts/{claimed['eventId']}", headers={"accept": "text/html"})
    assert reply.media == "text/html"
    assert claimed["agentId"] in reply.text
    assert "<script" not in reply.text
    assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_a_browser_brings_the_key_by_basic_and_only_to_look(workspace: Workspace, claimed: dict[str, Any]) -> None:
    prefix, _, secret = workspace.key("read", "produce")["apiKey"].rpartition("_")
    auth, html = (prefix.removeprefix("rk_"), secret), {"accept": "text/html"}
    url = f"{workspace.server.url}/receipts/{claimed['eventId']}"
    asked = httpx2.get(url, headers=html, timeout=60)
    assert asked.status_code == 401
    assert asked.headers["www-authenticate"].startswith("Basic ")
    assert httpx2.get(url, headers=html, auth=auth, timeout=60).status_code == 200
    assert httpx2.get(url, headers=html, auth=(auth[0], "wrong"), timeout=60).status_code == 401
    assert httpx2.get(url, auth=auth, timeout=60).status_code == 401
    queues = f"{workspace.server.url}/queues"
    assert httpx2.post(queues, headers=html, auth=auth, json={"name": "forged"}, timeout=60).status_code == 401


def test_the_newest_head_is_signed_by_the_log(workspace: Workspace, claimed: dict[str, Any]) -> None:
    workspace.admin.get(f"/events/{claimed['eventId']}/receipt")
    reply = workspace.admin.get("/checkpoints/latest").json
    note = workspace.admin.get("/checkpoints/latest", headers={"accept": "text/plain"}).text
    checkpoint, _ = open_checkpoint(note.encode())
    assert workspace.workspace_id in checkpoint.origin
    assert reply["size"] <= checkpoint.size
    event = workspace.admin.get(f"/events/{claimed['eventId']}").json
    assert checkpoint.size >= event["sequence"]


def test_a_new_workspace_has_a_signed_head_too(workspace: Workspace) -> None:
    assert workspace.admin.get("/checkpoints/latest").json["size"] >= 2


def test_sequences_are_per_workspace_and_reveal_nothing_about_others(workspace: Workspace, other: Workspace) -> None:
    for _ in range(5):
        other.admin.post("/queues", {"name": "noise"})
    first = workspace.admin.get("/ledger/query?limit=1").json["items"][0]
    assert first["sequence"] == 1
