"""The meter: each record once, under its type and its agent, at the price in force at its place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redkey.readmodel import meter
from redkey.readmodel.meter import Meter
from redkey.reducers.world import SECOND, World
from redkey.wire.envelope import AnyWire, wire_from
from tools.derive import golden

DAY = 86_400 * SECOND


def _wire(event: str, stream_id: str, sender: str = "human:key_1", **payload: Any) -> AnyWire:
    """The golden wire of a type, on another stream and by another sender."""
    wire = wire_from(golden(event)[0])
    return msgspec.structs.replace(
        wire,
        sender=sender,
        stream=msgspec.structs.replace(wire.stream, stream_id=stream_id),
        payload=msgspec.structs.replace(wire.payload, **payload),
    )


def test_records_are_counted_by_day_type_and_agent_at_the_price_of_their_place() -> None:
    world, counted = World(), Meter()
    attempted, claimed = "task.claim_attempted", "task.claimed"
    counted.note(world.workspace.prices, _wire(attempted, "agent:agt_1"), 100, DAY - 1, None)
    counted.note(
        world.workspace.prices, _wire(claimed, "task:task_1:attempt:1", "system", agent_id="agt_1"), 50, DAY, None
    )
    world.workspace.prices = {attempted: 7}
    counted.note(world.workspace.prices, _wire(attempted, "agent:agt_1"), 10, DAY, None)
    counted.note(world.workspace.prices, _wire(attempted, "agent:agt_2"), 1, DAY, "unknown_agent")
    assert counted.take() == {
        f"type/1970-01-01/{attempted}/events": 1,
        f"type/1970-01-01/{attempted}/bytes": 100,
        f"type/1970-01-01/{attempted}/credits": 1,
        "agent/1970-01-01/agt_1/events": 1,
        "agent/1970-01-01/agt_1/bytes": 100,
        "agent/1970-01-01/agt_1/credits": 1,
        f"type/1970-01-02/{claimed}/events": 1,
        f"type/1970-01-02/{claimed}/bytes": 50,
        f"type/1970-01-02/{attempted}/events": 2,
        f"type/1970-01-02/{attempted}/bytes": 11,
        f"type/1970-01-02/{attempted}/credits": 7,
        "agent/1970-01-02/agt_1/events": 2,
        "agent/1970-01-02/agt_1/claims": 1,
        "agent/1970-01-02/agt_1/bytes": 60,
        "agent/1970-01-02/agt_1/credits": 7,
        "agent/1970-01-02/agt_2/events": 1,
        "agent/1970-01-02/agt_2/bytes": 1,
    }
    assert not counted.take(), "what was taken is not counted again"


def test_however_many_records_are_counted_at_once_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "_AT_ONCE", 4)
    world, counted = World(), Meter()
    for _ in range(11):
        counted.note(world.workspace.prices, _wire("queue.created", "queue:queue_1"), 3, 0, None)
    name = "type/1970-01-01/queue.created"
    assert counted.take() == {f"{name}/events": 11, f"{name}/bytes": 33, f"{name}/credits": 11}
