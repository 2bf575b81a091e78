"""The witness check: the ledger's order shows that the calls could have happened one after another.

It compares what clients saw (when each call began and ended, and its answer) with the ledger: every acknowledged call
is on the ledger as answered; an answer without a record was true at some moment during the call; and a call that began
after another had ended comes after it. It takes one sort and one sweep.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from redkey.services.outcome import Outcome

Wire = dict[str, Any]
# Wires that end a hold without a winner.
_LETS_GO = (
    "task.released",
    "task.blocked",
    "task.lease_expired",
    "task.stalled",
    "task.failed",
    "task.cancelled",
)


@dataclass
class Call:
    """One call of a client with all its retries. `told` is its answer; None if the outcome is unknown."""

    command: Any
    began: float
    # The head of the ledger when the call began and when it ended.
    first: int
    ended: float = 0
    last: int = 0
    told: Outcome | None = None
    refused: str = ""
    agent_id: str = ""


@dataclass
class Timeline:
    """A fact that changes along the ledger: (sequence, value), in order."""

    places: list[int] = field(default_factory=lambda: [0])
    values: list[Any] = field(default_factory=lambda: [None])

    def turn(self, sequence: int, value: Any) -> None:
        self.places.append(sequence)
        self.values.append(value)

    def between(self, first: int, last: int) -> list[Any]:
        """Every value the fact had at some place from `first` to `last`."""
        return self.values[bisect_right(self.places, first) - 1 : bisect_right(self.places, last)]


def check(calls: Sequence[Call], wires: Sequence[Wire]) -> None:
    """Raise AssertionError if the ledger cannot explain the calls."""
    facts = _facts(wires)
    for call in calls:
        if call.told is not None and call.told.records and not _is_told_again(call):
            _recorded(call, wires)
        elif call.told is not None or call.refused:
            _true_then(call, facts)
    _in_real_time(calls)


def _is_told_again(call: Call) -> bool:
    """A miss or rejection that was recorded before the call began and is repeated."""
    assert call.told is not None
    return call.told.repeated and call.told.records[-1].sequence <= call.first


def _recorded(call: Call, wires: Sequence[Wire]) -> None:
    assert call.told is not None
    for one in (*call.told.records, *(call.told.next.records if call.told.next else ())):
        assert one.sequence <= len(wires), f"{call.command}: record {one.sequence} is lost"
        assert wires[one.sequence - 1] == one.wire, f"{call.command}: record {one.sequence} is another"
        assert call.first < one.sequence <= call.last, f"{call.command}: {one.sequence} is not within {call}"


def _facts(wires: Sequence[Wire]) -> dict[str, Timeline]:
    """Who holds each task and its state (by task), and whether each claim holds (by claim)."""
    facts: dict[str, Timeline] = {}
    holders: dict[str, str] = {}

    def turn(key: str, sequence: int, value: Any) -> None:
        facts.setdefault(key, Timeline()).turn(sequence, value)

    def let_go(task_id: str, sequence: int) -> None:
        claim_id = holders.pop(task_id, None)
        if claim_id is not None:
            turn(claim_id, sequence, "lost")

    for sequence, wire in enumerate(wires, 1):
        stream, kind, payload = wire["stream"]["stream_id"], wire["type"], wire["payload"]
        if not stream.startswith("task:"):
            continue
        task_id = stream.split(":")[1]
        if kind == "task.claimed" or payload.get("reacquired"):
            holders[task_id] = payload["claim_id"]
            turn(payload["claim_id"], sequence, "held")
            turn(task_id, sequence, ("held", payload["claim_id"]))
        elif kind in _LETS_GO:
            let_go(task_id, sequence)
            turn(task_id, sequence, (kind, ""))
        elif kind == "task.complete":
            claim_id = holders[task_id]
            let_go(task_id, sequence)
            turn(task_id, sequence, ("held", claim_id))
        elif kind in ("task.available", "task.created", "task.unblocked"):
            turn(task_id, sequence, (kind, ""))
    return facts


def _true_then(call: Call, facts: dict[str, Timeline]) -> None:
    """Check that an answer without a record was true at some place during the call."""
    claim_id, task_id = getattr(call.command, "claim_id", ""), getattr(call.command, "task_id", "")
    if call.refused == "lease_lost" and claim_id in facts:
        seen = facts[claim_id].between(call.first, call.last)
        assert set(seen) != {"held"}, f"{call.command}: told that the lease is lost, and it was held all the time"
    if call.told is None:
        return
    if call.told.answer is not None and "held" in call.told.answer and task_id in facts:
        seen = facts[task_id].between(call.first, call.last)
        assert ("held", call.told.answer["held"]) in seen, f"{call.command}: told of a hold that was not there: {seen}"
    missed = call.told.first("task.claim_missed")
    if missed is not None and task_id in facts:
        winner = ("held", missed.wire["payload"]["winning_claim_id"])
        seen = facts[task_id].between(call.first, call.last)
        assert winner in seen, f"{call.command}: told that {winner[1]} won, {seen} was true"


def _in_real_time(calls: Sequence[Call]) -> None:
    """A call that ended before another one began must come before it."""
    recorded = [
        (call.began, call.ended, call.told.records[0].sequence, call)
        for call in calls
        if call.told is not None and call.told.records and not _is_told_again(call)
    ]
    ends = sorted((ended, sequence) for _, ended, sequence, _ in recorded)
    index, highest = 0, 0
    for began, _, sequence, call in sorted(recorded, key=lambda one: one[0]):
        while index < len(ends) and ends[index][0] < began:
            highest = max(highest, ends[index][1])
            index += 1
        assert sequence > highest, f"{call.command} at {sequence} began after record {highest} was acknowledged"
