"""Seed 001: its literal envelope and message are valid, and what it says of streams, lineage and content holds."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from redkey.errors import WireRefused
from redkey.stores.sqlite import SqliteStore
from redkey.wire.catalogue import SCHEMAS
from redkey.wire.lift import Log, lift
from redkey.wire.schema import compile_schema
from redkey.wire.validate import MESSAGE_LIMIT, too_large, validate
from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, register
from tests.harness.invariants import check_topic, decode, read_all
from tests.seeds.literal import example, put, spellings, without
from tools.seeds import ROOT

# What the seed leaves open with dots, and the payload that every task.started has.
LITERAL = put(put(example("001-envelope"), ("wire_id",), "wire_01HZYB4X9Q6W3N8E2R7T5V1K0M"), ("payload",), {})
LITERAL = put(LITERAL, ("stream", "causation_id"), "wire_01HZXB4X9Q6W3N8E2R7T5V1K0M")
LITERAL["payload"] = {"claim_id": "clm_01HZYB4X9Q6W3N8E2R7T5V1K0M", "agent_id": "agt_01HZYB4X9Q6W3N8E2R7T5V1K0M"}


def _pointers(wire: dict[str, Any]) -> set[str]:
    return {finding.pointer for finding in validate(wire)}


@pytest.mark.parametrize(
    "folder",
    [
        "schemas/agent-wire/v1.1",
        "fixtures/agent-wire/v1.1",
        "contracts/agent-wire/v1.1",
        "tests/conformance/agent-wire",
        "tests/reducers/agent-wire",
    ],
)
def test_the_directories_of_the_seed_are_there(folder: str) -> None:
    assert list((ROOT / folder).iterdir())


def test_the_literal_envelope_is_a_valid_wire() -> None:
    assert validate(LITERAL) == []


def test_the_literal_task_started_is_read_with_the_claim_that_it_leaves_out() -> None:
    literal = example("001-envelope")
    assert literal["payload"] == {}
    assert "/payload/claim_id" in _pointers(literal)
    ((wire,), found) = (lift(literal).wires, lift(literal))
    assert validate(wire) == []
    assert wire["stream"]["parent_task_id"] == literal["stream"]["parent_task_id"]
    assert {one.pointer for one in (*found.lost, *found.assumed)} == {
        "/wire_id",
        "/stream/causation_id",
        "/payload/claim_id",
    }
    # In a log, it is the claim that its agent has there; the wire before it may be of 1.0.
    log = Log()
    claim = {
        "wire": "1.0",
        "type": "claim",
        "sender": "quinn-03",
        "ts": "2026-05-06T15:00:00Z",
        "payload": {"task_id": "0.0.8830671", "agent": "quinn-03", "role": "developer"},
    }
    claimed = [one for one in lift(claim, log).wires if one["type"] == "task.claimed"]
    (started,) = lift(literal, log).wires
    assert started["payload"] == {name: claimed[0]["payload"][name] for name in ("claim_id", "agent_id")}


@pytest.mark.parametrize("sender", ["runner:r1", "human:ada", "system"])
def test_a_claim_is_assumed_for_its_own_agent_alone(sender: str) -> None:
    with pytest.raises(WireRefused):
        lift({**LITERAL, "sender": sender, "payload": {}})


@pytest.mark.parametrize("field", ["wire", "wire_id", "type", "sender", "ts", "stream", "state", "payload"])
def test_every_field_of_the_envelope_is_required(field: str) -> None:
    assert example("001-envelope").keys() - {"extensions"} >= {field}
    assert _pointers(without(LITERAL, field)) == {f"/{field}"}


def test_extensions_are_optional() -> None:
    assert validate(without(LITERAL, "extensions")) == []


@pytest.mark.parametrize("sender", ["agent:quinn-03", "runner:r1", "system", "human:ada"])
def test_the_four_senders_are_valid(sender: str) -> None:
    assert validate({**LITERAL, "sender": sender}) == []


@pytest.mark.parametrize("sender", ["quinn", "agent:", "robot:r1", "human", "system:x", "Agent:quinn", ""])
def test_other_senders_are_refused(sender: str) -> None:
    assert _pointers({**LITERAL, "sender": sender}) == {"/sender"}


@pytest.mark.parametrize("field", ["stream_id", "stream_seq", "context_id"])
def test_identity_order_and_context_of_a_stream_are_required(field: str) -> None:
    assert _pointers(without(LITERAL, "stream", field)) == {f"/stream/{field}"}


@pytest.mark.parametrize("field", ["correlation_id", "causation_id", "reference_task_ids", "parent_task_id"])
def test_lineage_is_optional_and_its_form_is_held(field: str) -> None:
    assert validate(without(LITERAL, "stream", field)) == []
    assert _pointers(put(LITERAL, ("stream", field), "no id at all")) == {f"/stream/{field}"}


def test_the_state_of_a_task_event_is_the_one_of_its_type() -> None:
    assert "/state" in _pointers(put(LITERAL, ("state", "category"), "completed"))
    assert "/state" in _pointers(put(LITERAL, ("state", "terminal"), True))


def test_a_wire_has_at_most_1_024_bytes() -> None:
    assert MESSAGE_LIMIT == 1024
    assert too_large(b"x" * 1024) == []
    assert [finding.code for finding in too_large(b"x" * 1025)] == ["wire_too_large"]
    # The same holds for a whole wire that is read.
    padded = put(LITERAL, ("stream", "reference_task_ids"), ["0.0.8830669"] * 100)
    assert "wire_too_large" in {finding.code for finding in validate(padded)}


def test_hcs_metadata_is_refused_inside_a_wire() -> None:
    assert _pointers({**LITERAL, **example("001-hcs-metadata")}) == {"/hcs"}


def test_the_literal_message_is_valid() -> None:
    schema = compile_schema(f"{SCHEMAS}/message.schema.json")
    messages = spellings(example("001-message"))
    assert [message["role"] for message in messages] == ["human", "agent", "system"]
    assert [schema.findings(message) for message in messages] == [[], [], []]
    # message_id, role and parts are required, metadata is not.
    missing = {name: [one.pointer for one in schema.findings(without(messages[0], name))] for name in messages[0]}
    assert missing == {"message_id": ["/message_id"], "role": ["/role"], "parts": ["/parts"], "metadata": []}


def test_the_literal_reducer_case_is_the_first_case() -> None:
    path = ROOT / "tests/reducers/agent-wire/happy-path-with-one-artifact.json"
    assert json.loads(path.read_text()) == example("001-reducer-case")


def test_reducers_need_no_model_and_no_network() -> None:
    forbidden = ("anthropic", "openai", "httpx2", "httpx", "socket", "asyncio", "ssl", "sqlite3")
    code = f"import redkey.reducers.replay, sys; print([name for name in {forbidden!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- a real ledger ---

WORD = "kumquat"


def _wires(workspace: Workspace) -> list[dict[str, Any]]:
    """Return the wires of the workspace, from the data directory."""
    with SqliteStore(workspace.server.data, create=False) as store:
        for topic in store.topics():
            wires = decode(read_all(store, topic))
            if wires[0]["stream"]["stream_id"] == f"workspace:{workspace.workspace_id}":
                check_topic(store, topic)
                return wires
    raise AssertionError("no topic of this workspace")


def _of(wires: list[dict[str, Any]], task_id: str) -> list[dict[str, Any]]:
    return [wire for wire in wires if wire["stream"]["stream_id"].startswith(f"task:{task_id}:")]


def test_working_content_never_reaches_the_ledger(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    agent_id = register(admin, agentCard={"name": "A", "description": f"Knows the {WORD}"})["agentId"]
    given = {"title": WORD, "description": f"About a {WORD}", "input": {"fruit": WORD}, "completionCriteria": [WORD]}
    failed, done = create_task(admin, **given), create_task(admin, **given)
    admin.post(f"/tasks/{done}/messages", {"parts": [{"kind": "text", "text": WORD}]})
    claim_id = claim(admin, failed, agent_id)["claimId"]
    assert admin.post(f"/claims/{claim_id}/fail", {"reason": f"No {WORD} left"}).status == 200
    claim_id = claim(admin, done, agent_id)["claimId"]
    assert admin.post(f"/claims/{claim_id}/artifacts", {"name": "report", "content": WORD * 1000}).status == 201
    ended = admin.post(f"/claims/{claim_id}/complete", {"summary": WORD, "notes": WORD, "output": {"a": WORD}})
    assert ended.status == 200
    assert admin.get(f"/tasks/{done}").json["summary"] == WORD
    wires = _wires(workspace)
    assert {"task.failed", "task.complete", "artifact.ready", "message.added"} <= {wire["type"] for wire in wires}
    assert WORD not in json.dumps(wires)
    (ready,) = [wire for wire in wires if wire["type"] == "artifact.ready"]
    assert {"artifact_id", "name", "version", "sha256", "bytes", "readiness"} <= ready["payload"].keys()


def test_a_retry_keeps_its_context_and_has_the_next_attempt(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    task_id = create_task(workspace.admin, contextId="project:m01r")
    workspace.admin.post(f"/tasks/{task_id}/cancel")
    workspace.admin.post(f"/tasks/{task_id}/retry")
    wires = _of(_wires(workspace), task_id)
    streams = list(dict.fromkeys(wire["stream"]["stream_id"] for wire in wires))
    assert streams == [f"task:{task_id}:attempt:1", f"task:{task_id}:attempt:2"]
    assert {wire["stream"]["context_id"] for wire in wires} == {"project:m01r"}


def test_a_correction_is_a_new_stream_that_references_the_old_one(workspace: Workspace) -> None:
    admin = workspace.admin
    begin_queue(admin)
    agent_id = register(admin)["agentId"]
    first = create_task(admin, contextId="project:m01r")
    admin.post(f"/claims/{claim(admin, first, agent_id)['claimId']}/complete")
    for path in ("retry", "cancel"):
        assert admin.post(f"/tasks/{first}/{path}").status == 409
    ended = _of(_wires(workspace), first)
    second = create_task(admin, contextId="project:m01r", referenceTaskIds=[first], parentTaskId=first)
    wires = _wires(workspace)
    assert _of(wires, first) == ended
    created = _of(wires, second)[0]["stream"]
    assert created["context_id"] == ended[0]["stream"]["context_id"]
    assert (created["reference_task_ids"], created["parent_task_id"]) == ([first], first)


def test_records_keep_hcs_metadata_beside_the_wire(workspace: Workspace) -> None:
    with SqliteStore(workspace.server.data, create=False) as store:
        records = read_all(store, store.topics()[0])
    assert all("hcs" not in json.loads(record.wire) for record in records)
    literal = example("001-hcs-metadata")["hcs"]
    assert set(literal) == {"topic_id", "sequence_number", "consensus_timestamp", "running_hash"}
    first = records[0]
    assert (first.sequence, len(first.running_hash)) == (1, 48)
    assert first.timestamp > 0
