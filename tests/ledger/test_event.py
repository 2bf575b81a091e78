"""What a receipt shows of a wire follows from the wire alone, for every type of the catalogue."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redkey.errors import ProofRefused
from redkey.ledger.event import event_at, event_of
from redkey.shapes.events import Party
from redkey.wire import files
from tests.harness.small_log import SmallLog


def wire(kind: str, sender: str, stream: str, **payload: Any) -> dict[str, Any]:
    return {
        "wire_id": "wire_01J00000000000000000000000",
        "type": kind,
        "sender": sender,
        "stream": {"stream_id": stream},
        "payload": payload,
    }


def test_an_event_has_the_fields_of_seed_004() -> None:
    log = SmallLog(2)
    assert msgspec.to_builtins(event_of(log.records[1])) == {
        "eventId": "evt_01J00000000000000000000001",
        "type": "task.claimed",
        "sequence": 2,
        "timestamp": "2026-05-07T18:15:00.001000003Z",
        "actor": {"type": "agent", "id": "agt_01J00000000000000000000001"},
        "subject": {"type": "task", "id": "task_01J00000000000000000000001"},
    }


@pytest.mark.parametrize(
    ("given", "actor", "subject"),
    [
        (wire("task.created", "human:key_1", "task:t1:attempt:1"), ("human", "key_1"), ("task", "t1")),
        (
            wire("task.started", "agent:q", "task:t1:attempt:2", agent_id="agt_1"),
            ("agent", "agt_1"),
            ("task", "t1"),
        ),
        (wire("task.created", "agent:q", "task:t1:attempt:1"), ("agent", "q"), ("task", "t1")),
        (wire("task.claim_missed", "system", "agent:agt_1", task_id="t1"), ("agent", "agt_1"), ("task", "t1")),
        (wire("task.lease_expired", "system", "task:t1:attempt:1"), ("system", "system"), ("task", "t1")),
        (wire("role.granted", "human:k", "role:role_r", agent_id="agt_1"), ("human", "k"), ("role", "role_r")),
        (
            wire("inbox.sent", "agent:q", "agent:agt_2", message_id="msg_1"),
            ("agent", "q"),
            ("message", "msg_1"),
        ),
        (wire("review.concern", "agent:q", "task:t1:attempt:1"), ("agent", "q"), ("task", "t1")),
        (wire("signer.added", "system", "workspace:wk_1", signer_id="0a"), ("system", "system"), ("signer", "0a")),
        (wire("ledger.restored", "system", "workspace:wk_1"), ("system", "system"), ("workspace", "wk_1")),
        (wire("agent.lost", "system", "agent:agt_1"), ("system", "system"), ("agent", "agt_1")),
        (wire("agent.heartbeat", "agent:q", "agent:agt_1"), ("agent", "agt_1"), ("agent", "agt_1")),
    ],
)
def test_who_acted_and_on_what(given: dict[str, Any], actor: tuple[str, str], subject: tuple[str, str]) -> None:
    event = event_at(given, 1, 0)
    assert (event.actor, event.subject) == (Party(type=actor[0], id=actor[1]), Party(type=subject[0], id=subject[1]))


def test_every_golden_fixture_is_an_event() -> None:
    folder = "fixtures/agent-wire/v1.1"
    wires = [files.load(f"{folder}/{name}") for name in files.names(folder, ".valid.json")]
    for wire in wires:
        if "wire_id" in wire:
            event = event_at(wire, 1, 0)
            assert event.actor.id
            assert event.subject.id


@pytest.mark.parametrize(
    "value",
    [
        *(None, 5, [], {}, {"wire_id": 5}),
        wire("x", "y", "z") | {"payload": None},
        wire("x", "y", "z") | {"sender": 1},
        wire("task.created", "system", "task:t:attempt"),
    ],
)
def test_what_is_no_wire_is_refused(value: object) -> None:
    with pytest.raises(ProofRefused) as refused:
        event_at(value, 1, 0)
    assert refused.value.code == "wire_unreadable"


def test_a_time_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(ProofRefused):
        event_at(wire("task.created", "system", "task:t:attempt:1"), 1, 10**30)
