"""The A2A projection: how content is shown, what is shown without it, and that a damaged contract is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from a2a.types import StreamResponse
from google.protobuf.json_format import ParseDict

from redkey.errors import ContractBroken
from redkey.wire.a2a import A2ATask, project, snapshot
from redkey.wire.a2a_contract import FILE, compile_projection
from redkey.wire.catalogue import contract
from tests.reducers.case import Builder, numbered

CLAIMED = ["task.created", "task.available", "task.claimed"]


def nothing(ref: Any) -> None:
    return None


def run(wires: list[dict[str, Any]], documents: dict[str, Any] | None = None) -> tuple[A2ATask, list[dict[str, Any]]]:
    """Project wires; the content of a ref is looked up by the type of its wire."""
    known = {
        wire["payload"][name]["sha256"]: wire["type"] for wire in wires for name in wire["payload"] if "_ref" in name
    }
    task, sent = None, []
    for wire in wires:
        task, found = project(task, wire, lambda ref: (documents or {}).get(known[ref["sha256"]]))
        sent += found
    assert task is not None
    for found in sent:
        ParseDict(found, StreamResponse(), ignore_unknown_fields=False)
    return task, sent


def test_a_task_begins_with_what_was_asked() -> None:
    builder = Builder()
    wire = builder.wire("task.created")
    wire["stream"]["reference_task_ids"] = [numbered("task", 8), numbered("task", 9)]
    _, sent = run(
        [wire], {"task.created": {"title": "Review it", "input": {"files": ["a.py"]}, "brief": {"goal": "x"}}}
    )
    ids = {"taskId": numbered("task", 1), "contextId": "project:1"}
    assert sent == [
        {
            "task": {
                "id": numbered("task", 1),
                "contextId": "project:1",
                "status": {"state": "TASK_STATE_SUBMITTED", "timestamp": "2026-01-01T00:00:01Z"},
                "history": [
                    {
                        "messageId": numbered("msg", 1),
                        **ids,
                        "role": "ROLE_USER",
                        "parts": [{"text": "Review it"}, {"data": {"files": ["a.py"]}}],
                        "referenceTaskIds": [numbered("task", 8), numbered("task", 9)],
                    }
                ],
            }
        }
    ]


def test_an_erased_first_message_keeps_its_references_without_text() -> None:
    wire = Builder().wire("task.created")
    wire["stream"]["reference_task_ids"] = [numbered("task", 8)]
    _, sent = run([wire])
    (message,) = sent[0]["task"]["history"]
    assert message["parts"] == [{"text": ""}]
    assert message["referenceTaskIds"] == [numbered("task", 8)]


def test_an_artifact_has_a_url_a_media_type_and_its_hash_and_version_as_strings() -> None:
    document = {"uri": "https://example.org/r.md", "media_type": "text/markdown"}
    wires = Builder().wires([*CLAIMED, {"type": "artifact.ready", "version": 2, "readiness": "final"}])
    _, sent = run(wires, {"artifact.ready": document})
    assert sent[-1] == {
        "artifactUpdate": {
            "taskId": numbered("task", 1),
            "contextId": "project:1",
            "artifact": {
                "artifactId": numbered("art", 1),
                "name": "report",
                "parts": [{"url": "https://example.org/r.md", "mediaType": "text/markdown"}],
                "metadata": {
                    "redkey.artifact": {
                        "sha256": f"{4:064d}",
                        "version": "2",
                        "bytes": "1000",
                        "readiness": "final",
                    }
                },
            },
            "lastChunk": True,
        }
    }


def test_an_artifact_whose_place_is_not_known_is_named_by_its_hash() -> None:
    sha256 = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
    _, sent = run(Builder().wires([*CLAIMED, {"type": "artifact.ready", "sha256": sha256}]))
    assert sent[-1]["artifactUpdate"]["artifact"]["parts"] == [
        {"url": "ni:///sha-256;WJG1tSLV3whtD_CxEPvZ0hu0_HFjrzTQgoai6Eb2vgM"}
    ]


def test_a_block_states_its_reason_and_suggested_resolution() -> None:
    document = {"reason": "Two specs disagree", "suggested_resolution": "Say which stands"}
    _, sent = run(Builder().wires([*CLAIMED, "task.blocked"]), {"task.blocked": document})
    status = sent[-1]["statusUpdate"]["status"]
    assert status["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert status["message"]["role"] == "ROLE_AGENT"
    assert status["message"]["parts"] == [{"text": "Two specs disagree"}, {"text": "Say which stands"}]


@pytest.mark.parametrize("blocker", ["spec_gap", "dependency", "auth"])
def test_a_block_without_content_still_names_its_kind(blocker: str) -> None:
    _, sent = run(Builder().wires([*CLAIMED, {"type": "task.blocked", "blocker_type": blocker}]))
    assert sent[-1]["statusUpdate"]["status"]["message"]["parts"] == [{"text": f"blocked: {blocker}"}]


def test_a_failure_shows_its_reason_if_it_has_one() -> None:
    wires = Builder().wires([*CLAIMED, "task.failed"])
    _, told = run(wires, {"task.failed": {"reason": "The tests fail"}})
    assert told[-1]["statusUpdate"]["status"]["message"]["parts"] == [{"text": "The tests fail"}]
    _, silent = run(wires)
    assert "message" not in silent[-1]["statusUpdate"]["status"]


def test_the_snapshot_has_history_artifacts_and_the_state_of_now() -> None:
    message = {
        "parts": [
            {"kind": "text", "text": "Use the second"},
            {"kind": "artifact_ref", "artifact_id": numbered("art", 1)},
            {
                "kind": "file_ref",
                "uri": "https://example.org/a",
                "sha256": "0" * 64,
                "media_type": "text/plain",
                "name": "a",
            },
            {"kind": "data", "data": {"depth": 2}},
        ]
    }
    documents = {"message.added": message, "task.created": {"title": "Review"}}
    events = [
        *CLAIMED,
        "task.started",
        "artifact.ready",
        "artifact.ready",
        "task.blocked",
        "message.added",
        "task.unblocked",
    ]
    wires = Builder().wires(events)
    task, sent = run(wires, documents)
    known = {f"{place:064d}": documents.get(wire["type"]) for place, wire in enumerate(wires, 1)}
    found = snapshot(task, lambda ref: known[ref["sha256"]])
    ParseDict(found, StreamResponse(), ignore_unknown_fields=False)
    body = found["task"]
    assert body["status"] == {"state": "TASK_STATE_WORKING", "timestamp": "2026-01-01T00:00:09Z"}
    assert [artifact["artifactId"] for artifact in body["artifacts"]] == [numbered("art", 1), numbered("art", 2)]
    # The question of the agent comes before the answer, and is part of the history once the task goes on.
    assert [message["role"] for message in body["history"]] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]
    assert body["history"][1]["parts"] == [{"text": "blocked: spec_gap"}]
    assert body["history"][2]["parts"] == [
        {"text": "Use the second"},
        {"data": {"artifactId": numbered("art", 1)}},
        {"url": "https://example.org/a", "mediaType": "text/plain", "filename": "a"},
        {"data": {"depth": 2}},
    ]
    assert "Use the second" not in str(sent)


@pytest.mark.parametrize(("role", "shown"), [("human", "ROLE_USER"), ("agent", "ROLE_AGENT"), ("system", "ROLE_AGENT")])
def test_every_sender_that_is_not_a_human_counts_as_the_agent(role: str, shown: str) -> None:
    task, _ = run(Builder().wires(["task.created", {"type": "message.added", "role": role}]))
    found = snapshot(task, lambda ref: {"parts": [{"kind": "text", "text": "Half of it is done"}]})["task"]
    said = found["status"]["message"] if shown == "ROLE_AGENT" else found["history"][-1]
    assert (said["role"], said["parts"]) == (shown, [{"text": "Half of it is done"}])


def test_a_snapshot_does_not_say_blocked_when_it_is_not_any_more() -> None:
    blocked = [*CLAIMED, {"type": "task.blocked", "blocker_type": "resource"}]
    task, _ = run(Builder().wires(blocked))
    assert "message" in snapshot(task, nothing)["task"]["status"]
    task, sent = run(Builder().wires([*blocked, "task.unblocked"]))
    assert "message" not in snapshot(task, nothing)["task"]["status"]
    assert sent[-1]["statusUpdate"]["status"] == snapshot(task, nothing)["task"]["status"]
    assert snapshot(task, nothing)["task"]["history"][-1]["parts"] == [{"text": "blocked: resource"}]


def test_a_new_version_replaces_the_old_one_in_the_snapshot() -> None:
    versions = [{"type": "artifact.ready", "artifact": 1, "version": version} for version in (1, 2)]
    task, _ = run(Builder().wires([*CLAIMED, *versions]))
    (artifact,) = snapshot(task, nothing)["task"]["artifacts"]
    assert artifact["metadata"]["redkey.artifact"]["version"] == "2"


def test_the_ledger_time_replaces_the_time_of_the_producer() -> None:
    task, _ = project(None, Builder().wire("task.created"), nothing, "2026-05-06T16:00:01.123456789Z")
    assert task is not None
    assert task.timestamp == "2026-05-06T16:00:01.123456789Z"


@pytest.mark.parametrize("time", ["2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z"])
def test_a_time_that_no_calendar_has_is_left_out(time: str) -> None:
    wire = Builder().wire("task.created")
    _, (found,) = project(None, wire | {"ts": time}, nothing)
    assert "timestamp" not in found["task"]["status"]


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.1Z", "2026-12-31T23:59:59.123456789Z"])
def test_every_real_time_is_read_by_a2a(time: str) -> None:
    _, (found,) = project(None, Builder().wire("task.created") | {"ts": time}, nothing)
    assert found["task"]["status"]["timestamp"] == time
    ParseDict(found, StreamResponse(), ignore_unknown_fields=False)


def _rule(table: dict[str, Any], event: str, **change: Any) -> None:
    table["events"][event][-1].update(change)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda table: _rule(table, "task.started", to="TASK_STATE_ASLEEP"), "state 'TASK_STATE_ASLEEP'"),
        (lambda table: _rule(table, "task.started", object="dream"), "object 'dream'"),
        (lambda table: _rule(table, "task.started", to="TASK_STATE_SUBMITTED"), "task.started takes a task back"),
        (lambda table: _rule(table, "task.started", object="task"), "task.started takes a task back"),
        (lambda table: _rule(table, "task.started", when={"first": True}), "last rule of task.started"),
        (lambda table: table["events"].update({"task.dreamt": []}), "event type 'task.dreamt'"),
        (lambda table: table["interrupted"].append("TASK_STATE_ASLEEP"), "state 'TASK_STATE_ASLEEP'"),
        (lambda table: table["events"].update({"task.started": []}), "last rule of task.started"),
        (lambda table: table.pop("states"), "'states'"),
        (lambda table: table.update(events=3), "AttributeError"),
    ],
)
def test_a_damaged_contract_is_refused_by_name(damage: Any, named: str) -> None:
    table = copy.deepcopy(contract(FILE))
    damage(table)
    with pytest.raises(ContractBroken, match=named):
        compile_projection(table)
