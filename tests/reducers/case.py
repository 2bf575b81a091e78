"""Reducer cases: reading them, making wires of their events, and comparing states (agent-wire/README.md)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from redkey.wire.catalogue import catalogue
from redkey.wire.ids import task_stream
from tests.harness.replays import Replayed

HERE = Path(__file__).parent
CASES = sorted((HERE / "agent-wire").glob("*.json"))
TEMPLATES = json.loads((HERE / "wires.json").read_text())
TASK = "task_" + "1".zfill(26)
_START = datetime(2026, 1, 1, tzinfo=UTC)
_OWN_KEYS = ("type", "task", "attempt", "context", "claim", "agent", "artifact", "wire", "seq")

Wire = dict[str, Any]


def load(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def numbered(prefix: str, number: int) -> str:
    """Return an id of a case: its prefix and a number of 26 digits."""
    return f"{prefix}_{number:026d}"


def moment(seconds: int) -> str:
    return (_START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Builder:
    """Builds complete wires from the events of one case, in order; it only counts, and has no state machine."""

    def __init__(self) -> None:
        self.place = 0
        self._seq: dict[str, int] = {}
        self._claims = 0
        self._holds: dict[str, tuple[int, int]] = {}
        self._artifacts = 0
        self._made: dict[str, list[str]] = {}

    def wires(self, events: list[Any]) -> list[Wire]:
        return [self.wire(event) for event in events]

    def wire(self, event: str | dict[str, Any], **more: Any) -> Wire:
        """Return the wire of the next event."""
        given = {"type": event} if isinstance(event, str) else dict(event)
        given |= more
        self.place += 1
        kind = catalogue()[given["type"]]
        task = numbered("task", given.get("task", 1))
        on_task = kind.streams[0] == "task"
        stream_id = task_stream(task, given.get("attempt", 1)) if on_task else ""
        claim, agent = self._holder(given, stream_id)
        if not on_task:
            default = f"agent:{numbered('agt', agent)}"
            stream_id = TEMPLATES["streams"].get(kind.streams[0], default)
        self._seq[stream_id] = given.get("seq", self._seq.get(stream_id, 0) + 1)
        wire = {
            "wire": "1.1",
            "wire_id": numbered("wire", given.get("wire", self.place)),
            "type": kind.name,
            "sender": "system" if kind.kind == "derived" else f"agent:agent-{agent}",
            "ts": moment(self.place),
            "stream": {
                "stream_id": stream_id,
                "stream_seq": self._seq[stream_id],
                "context_id": f"project:{given.get('context', 1)}",
            },
            "payload": self._payload(given, task, stream_id, claim, agent),
        }
        return wire | ({"state": kind.state} if kind.state else {})

    def _holder(self, given: dict[str, Any], stream_id: str) -> tuple[int, int]:
        last_claim, last_agent = self._holds.get(stream_id, (1, 1))
        new = given["type"] == "task.claimed" or not stream_id
        claim = given.get("claim", self._claims + 1 if new else last_claim)
        agent = given.get("agent", last_agent)
        if given["type"] == "task.claimed":
            self._claims += 1
            self._holds[stream_id] = (claim, agent)
        return claim, agent

    def _payload(self, given: dict[str, Any], task: str, stream_id: str, claim: int, agent: int) -> dict[str, Any]:
        attempt = given.get("attempt", 1)
        words = {
            "$task": task,
            "$attempt": attempt,
            "$claim": numbered("clm", claim),
            "$agent": numbered("agt", agent),
            "$artifact": "",
            "$artifacts": self._made.get(stream_id, [])[:6],
            "$message": numbered("msg", self.place),
            "$lease": moment(self.place + 900),
            "$hash": f"{self.place:064d}",
            "$ref": {"sha256": f"{self.place:064d}", "bytes": self.place},
            "$retry_of": attempt - 1 or None,
        }
        if given["type"] == "artifact.ready":
            self._artifacts += 1
            words["$artifact"] = numbered("art", given.get("artifact", self._artifacts))
            made = self._made.setdefault(stream_id, [])
            if words["$artifact"] not in made:
                made.append(words["$artifact"])
        filled = {
            name: words[value] if isinstance(value, str) and value.startswith("$") else value
            for name, value in TEMPLATES["payloads"][given["type"]].items()
        }
        filled |= {name: value for name, value in given.items() if name not in _OWN_KEYS}
        return {name: value for name, value in filled.items() if value is not None}


def outcome(replayed: Replayed, wires: list[Wire]) -> dict[str, Any]:
    """Return what a case may expect: the replay, the keys of task 1, and the void wires by index."""
    state = replayed.as_json()
    places = [place for place, reason in enumerate(_reasons(wires), 1) if reason is not None]
    void = [[place, item["reason"]] for place, item in zip(places, state["void"], strict=True)]
    return state | state["tasks"].get(TASK, {}) | {"void": void}


def _reasons(wires: list[Wire]) -> list[str | None]:
    again = Replayed()
    return [again.apply(wire) for wire in wires]


def mismatch(expected: Any, actual: Any, where: str = "") -> list[str]:
    """List every place where the state differs from the expected one."""
    if isinstance(expected, dict) and expected and isinstance(actual, dict):
        found = []
        for key, wanted in expected.items():
            if key not in actual:
                found.append(f"{where}/{key} is missing")
            else:
                found += mismatch(wanted, actual[key], f"{where}/{key}")
        return found
    same = expected == actual and type(expected) is type(actual)
    return [] if same else [f"{where} is {actual!r}, expected {expected!r}"]
