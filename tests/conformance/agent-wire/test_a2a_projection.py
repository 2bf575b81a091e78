"""Seed 001, Required Conformance Tests: task and artifact events map cleanly to A2A task and artifact events.

The projection runs over every reducer case, and each object is read, strictly, with the official A2A types.
The oracle below is written by hand from the table of the specification: the contract and the code can
disagree with it, and then a test fails.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from a2a.types import StreamResponse, TaskState
from google.protobuf.json_format import MessageToDict, ParseDict

from redkey.wire.a2a import A2ATask, project, snapshot
from redkey.wire.catalogue import catalogue
from tests.harness.replays import Replayed
from tests.reducers.case import CASES, Builder, load

SUBMITTED, WORKING = "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"
INPUT_REQUIRED, AUTH_REQUIRED = "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"
COMPLETED, FAILED = "TASK_STATE_COMPLETED", "TASK_STATE_FAILED"
CANCELED, REJECTED = "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"
OPEN = [SUBMITTED, WORKING, INPUT_REQUIRED, AUTH_REQUIRED]
CLOSED = [COMPLETED, FAILED, CANCELED, REJECTED]

# (wire, payload) -> (state after, objects); None keeps the state, "resume" leaves INPUT_ and AUTH_REQUIRED for
# WORKING. "status?" is a status update only when the state changed.
ORACLE: list[tuple[str, dict[str, Any], str | None, str]] = [
    ("task.created", {"attempt": 2}, "resume", "status?"),
    ("task.available", {}, "resume", "status?"),
    ("task.claimed", {}, "resume", "status?"),
    ("task.released", {}, "resume", "status?"),
    ("task.lease_expired", {}, "resume", "status?"),
    ("task.stalled", {}, "resume", "status?"),
    ("task.unblocked", {}, "resume", "status?"),
    ("task.started", {}, WORKING, "status?"),
    ("task.progress", {}, WORKING, "status"),
    ("task.blocked", {"blocker_type": "spec_gap"}, INPUT_REQUIRED, "status"),
    ("task.blocked", {"blocker_type": "ambiguity"}, INPUT_REQUIRED, "status"),
    ("task.blocked", {"blocker_type": "auth"}, AUTH_REQUIRED, "status"),
    ("task.blocked", {"blocker_type": "dependency"}, WORKING, "status"),
    ("task.blocked", {"blocker_type": "resource"}, WORKING, "status"),
    ("task.blocked", {"blocker_type": "tool_failure"}, WORKING, "status"),
    ("task.blocked", {"blocker_type": "verification_fail"}, WORKING, "status"),
    ("artifact.ready", {}, None, "artifact"),
    ("task.complete", {}, COMPLETED, "status"),
    ("task.cancelled", {}, CANCELED, "status"),
    ("task.failed", {"retry": False}, FAILED, "status"),
    ("task.failed", {"retry": False, "kind": "deadline"}, FAILED, "status"),
    ("task.failed", {"retry": False, "kind": "rejected"}, REJECTED, "status"),
    ("task.failed", {"retry": True}, WORKING, "status"),
    ("task.failed", {"retry": True, "kind": "rejected"}, WORKING, "status"),
    ("message.added", {}, None, "none"),
]
PROJECTED = {"task.created", *(event for event, *_ in ORACLE)}

by_case = pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)


def parse(found: dict[str, Any]) -> StreamResponse:
    """The object as the official types read it: every field known, and nothing lost on the way."""
    parsed = ParseDict(found, StreamResponse(), ignore_unknown_fields=False)
    assert MessageToDict(parsed) == found
    return parsed


def kind_of(found: dict[str, Any]) -> str:
    (kind,) = found
    return {"task": "task", "statusUpdate": "status", "artifactUpdate": "artifact"}[kind]


def document(wire: dict[str, Any]) -> dict[str, Any]:
    """Content such as the wire's ref would name."""
    return {
        "task.created": {"title": "Review the migration", "input": {"branch": "main", "depth": 3}},
        "task.blocked": {"reason": "Two specs disagree", "suggested_resolution": "Say which one stands"},
        "task.failed": {"reason": "The tests do not pass"},
        "task.progress": {"text": "Three of five sources read."},
        "artifact.ready": {"uri": "https://example.org/report.md", "media_type": "text/markdown"},
        "message.added": {"parts": [{"kind": "text", "text": "The second one stands"}]},
    }.get(wire["type"], {})


def refs(wire: dict[str, Any]) -> list[str]:
    return [value["sha256"] for name, value in wire["payload"].items() if name.endswith("_ref")]


def run(events: list[Any], *, erased: bool = False) -> dict[str, tuple[A2ATask, list[dict[str, Any]]]]:
    """Each task's A2A task and all that its subscribers were sent, from the wires of a case that applied."""
    wires = Builder().wires(events)
    documents = {} if erased else {sha256: document(wire) for wire in wires for sha256 in refs(wire)}
    replayed = Replayed()
    tasks: dict[str, A2ATask | None] = {}
    sent: dict[str, list[dict[str, Any]]] = {}
    for wire in wires:
        if replayed.apply(wire) is None:
            task_id = wire["stream"]["stream_id"].split(":")[1]
            tasks[task_id], found = project(tasks.get(task_id), wire, lambda ref: documents.get(ref["sha256"]))
            sent.setdefault(task_id, []).extend(found)
    return {task_id: (task, sent[task_id]) for task_id, task in tasks.items() if task is not None}


def states(sent: list[dict[str, Any]]) -> list[str]:
    return [body["status"]["state"] for found in sent for body in found.values() if "status" in body]


@by_case
@pytest.mark.parametrize("erased", [False, True], ids=["with content", "erased"])
def test_every_object_is_an_a2a_object_and_the_task_comes_first(path: Path, erased: bool) -> None:
    for task_id, (task, sent) in run(load(path)["events"], erased=erased).items():
        assert [kind_of(found) for found in sent].index("task") == 0
        assert sum("task" in found for found in sent) == 1
        for found in sent:
            parse(found)
            body = next(iter(found.values()))
            assert body.get("id", body.get("taskId")) == task_id
            assert body["contextId"] == task.context_id
        parse(snapshot(task, lambda ref: None))


@by_case
def test_a_task_is_never_submitted_again_and_says_nothing_after_its_end(path: Path) -> None:
    for task, sent in run(load(path)["events"]).values():
        told = states(sent)
        assert told[0] == SUBMITTED
        assert SUBMITTED not in told[1:]
        assert not set(told[:-1]) & set(CLOSED)
        assert told[-1] == task.state
        if task.closed:
            assert states(sent[-1:]) == [task.state]


@by_case
def test_a_case_ends_in_the_a2a_state_that_its_wire_state_asks_for(path: Path) -> None:
    replayed = Replayed()
    wires = Builder().wires(load(path)["events"])
    for wire in wires:
        replayed.apply(wire)
    rejected = {wire["payload"]["task_id"] for wire in wires if wire["type"] == "gate.rejected"}
    projected = run(load(path)["events"])
    assert set(projected) == {task.task_id for task in replayed.tasks()}
    for task in replayed.tasks():
        state = projected[task.task_id][0].state
        if task.terminal:
            assert state == {"completed": COMPLETED, "failed": FAILED, "cancelled": CANCELED}[task.current.state]
        elif task.task_id in rejected:
            # A2A lets no task leave a terminal state: the completion stays, and the next attempt is not projected.
            assert state == COMPLETED
        else:
            assert state in OPEN


@by_case
def test_what_is_inside_stays_inside(path: Path) -> None:
    events = load(path)["events"]
    told = json.dumps([[sent, snapshot(task, lambda ref: None)] for task, sent in run(events).values()])
    for wire in Builder().wires(events):
        payload = wire["payload"]
        secrets = [wire["sender"], wire["wire_id"], wire["stream"]["stream_id"], wire["stream"].get("causation_id")]
        secrets += [payload.get(name) for name in ("claim_id", "agent_id", "winning_claim_id", "idem", "body")]
        for secret in secrets:
            assert secret is None or f'"{secret}"' not in told
            assert secret in (None, "system") or secret not in told
    for word in ("claim", "heartbeat", "lease", "sender", "stream", "sequence", "wire", "agt_", "clm_"):
        assert word not in told


@pytest.mark.parametrize("event", sorted(set(catalogue()) - PROJECTED))
def test_types_that_the_specification_does_not_list_are_never_projected(event: str) -> None:
    wire = Builder().wire(event)
    for state in [None, *OPEN]:
        task = None if state is None else A2ATask("task_1", "project:1", state)
        assert project(task, wire, document) == (task, [])


@pytest.mark.parametrize("before", OPEN)
@pytest.mark.parametrize(
    ("event", "payload", "to", "objects"), ORACLE, ids=[f"{event} {given}" for event, given, *_ in ORACLE]
)
def test_every_wire_in_every_open_state(
    before: str, event: str, payload: dict[str, Any], to: str | None, objects: str
) -> None:
    task, sent = project(A2ATask("task_1", "project:1", before), Builder().wire(event, **payload), lambda ref: None)
    if to == "resume":
        to = WORKING if before in (INPUT_REQUIRED, AUTH_REQUIRED) else None
    expected = to or before
    assert task is not None
    assert task.state == expected
    told = {"status?": ["status"] if expected != before else [], "none": []}.get(objects, [objects])
    assert [kind_of(found) for found in sent] == told
    assert states(sent) == ([expected] if "status" in told else [])
    for found in sent:
        parse(found)


@pytest.mark.parametrize("state", CLOSED)
@pytest.mark.parametrize("event", sorted(PROJECTED))
def test_a_closed_task_stays_as_it_is(state: str, event: str) -> None:
    task = A2ATask("task_1", "project:1", state)
    assert project(task, Builder().wire(event), document) == (task, [])


@pytest.mark.parametrize("event", sorted(PROJECTED - {"task.created"}))
def test_nothing_is_told_before_the_beginning(event: str) -> None:
    assert project(None, Builder().wire(event), document) == (None, [])


def test_all_attempts_of_a_task_are_one_a2a_task() -> None:
    retry = [
        {"type": event, "attempt": 2} for event in ("task.created", "task.available", "task.claimed", "task.started")
    ]
    events = ["task.created", "task.available", "task.claimed", "task.started", {"type": "task.failed", "retry": True}]
    (projected,) = run([*events, *retry, {"type": "task.complete", "attempt": 2}]).values()
    # The failure is told with its reason; the next attempt is told without it.
    assert states(projected[1]) == [SUBMITTED, WORKING, WORKING, WORKING, COMPLETED]


def test_progress_is_a_status_update_with_its_text_and_percentage() -> None:
    begun = ["task.created", "task.available", "task.claimed"]
    ((task, sent),) = run([*begun, "task.progress", "task.started", "task.complete"]).values()
    told = sent[1]["statusUpdate"]["status"]
    assert (told["state"], told["message"]["parts"]) == (WORKING, [{"text": "Three of five sources read."}])
    assert told["message"]["metadata"] == {"redkey.progress": {"percent": "60"}}
    parse(sent[1])
    assert task.history[-1].percent == 60, "what a status said goes into the history"
    ((_, erased),) = run([*begun, "task.progress"], erased=True).values()
    assert erased[1]["statusUpdate"]["status"]["message"]["parts"] == [{"text": "60 %"}]


def test_the_states_are_exactly_those_of_a2a() -> None:
    assert {*OPEN, *CLOSED} == set(TaskState.keys()) - {"TASK_STATE_UNSPECIFIED"}
