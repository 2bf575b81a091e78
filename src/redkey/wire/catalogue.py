"""The event catalogue, read from `contracts/agent-wire/v1.1/event-state-map.json`: there is no other copy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import msgspec

from redkey.wire import files

VERSION = "1.1"
CONTRACTS = "contracts/agent-wire/v1.1"
SCHEMAS = "schemas/agent-wire/v1.1"
FIXTURES = "fixtures/agent-wire/v1.1"


class EventType(msgspec.Struct, frozen=True):
    """One type of the catalogue: its schema, normalised category, stream kinds, and who may cause it."""

    name: str
    schema: str
    category: str
    streams: tuple[str, ...]
    kind: Literal["request", "derived", "both"]
    terminal: bool
    has_state: bool

    @property
    def state(self) -> dict[str, Any] | None:
        """Return the `state` of wires of this type, or None if they have none."""
        return {"category": self.category, "terminal": self.terminal} if self.has_state else None


def contract(name: str) -> Any:
    """Read one contract file of Agent Wire 1.1, such as `task-state-machine.json`."""
    return files.load(f"{CONTRACTS}/{name}")


@cache
def catalogue() -> Mapping[str, EventType]:
    """Return every event type by name."""
    table = contract("event-state-map.json")
    categories = table["categories"]
    return {
        name: EventType(
            name=name,
            schema=f"{SCHEMAS}/{event['schema']}",
            category=event["category"],
            streams=tuple(event["streams"]),
            kind=event["kind"],
            terminal=categories[event["category"]]["terminal"],
            has_state=categories[event["category"]]["state"],
        )
        for name, event in table["events"].items()
    }
