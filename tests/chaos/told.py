"""What callers were told, held against the ledger: from the lines of a load's log to the calls of the witness check."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from redkey.commands.claims import ClaimNext, ClaimTask, CompleteClaim
from redkey.readmodel import replies
from redkey.services.outcome import Outcome, Settled
from tests.witness import Call, Wire, check

Line = dict[str, Any]
# Answers that another call's record may stand for: an agent that asks again is told the same again.
_TOLD_AGAIN = frozenset({"claimed", "missed", "rejected"})


def read_log(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def acknowledged(lines: Iterable[Line]) -> list[Line]:
    """The calls whose answers name an event: what they did is on the ledger."""
    return [line for line in lines if line["status"] < 300 and "eventId" in json.loads(line["reply"])]


def hold_against(lines: Sequence[Line], wires: Sequence[Wire]) -> int:
    """Every answer is what the ledger says, and they could have happened one after another; how many were held."""
    places = {wire["wire_id"]: place for place, wire in enumerate(wires, 1)}
    calls = [_call(line, wires, places) for line in lines]
    _bound(calls, len(wires))
    check(calls, wires)
    return len(calls)


def _call(line: Line, wires: Sequence[Wire], places: dict[str, int]) -> Call:
    reply = json.loads(line["reply"])
    call = Call(_command(line), line["began"], 0, line["ended"])
    if line["status"] >= 300:
        assert line["status"] == 409, line
        call.refused = reply["code"]
        return call
    call.told = _outcome(reply, wires, places)
    if reply.get("next", {}).get("status") == "claimed":
        call.told.next = _outcome(reply["next"], wires, places)
    return call


def _outcome(reply: Any, wires: Sequence[Wire], places: dict[str, int]) -> Outcome:
    if "eventId" not in reply:
        return Outcome(answer={"status": reply["status"]})
    wire_id = "wire_" + reply["eventId"][4:]
    assert wire_id in places, f"{reply} was acknowledged and is lost"
    place = places[wire_id]
    wire = wires[place - 1]
    expected = _reply(wire, reply)
    told = {name: value for name, value in reply.items() if name in expected}
    assert told == expected, f"{reply} was told, {wire} is on the ledger"
    return Outcome([Settled(wire, place, 0)], repeated=reply.get("status") in _TOLD_AGAIN)


def _reply(wire: Wire, reply: Any) -> Any:
    """What the record itself says the answer is; a task's text is beside the ledger."""
    kind = wire["type"]
    if kind == "task.claimed":
        return msgspec.to_builtins(replies.claimed(wire))
    if kind == "task.claim_missed":
        return msgspec.to_builtins(replies.missed(wire, reply["next"]["queueId"]))
    if kind == "task.claim_rejected":
        return msgspec.to_builtins(replies.rejected(wire, reply["next"]["queueId"]))
    if kind in replies.HOLD_EVENTS:
        return msgspec.to_builtins(replies.hold_reply(wire))
    subject = wire["stream"]["stream_id"].split(":")[1]
    return {"agentId" if kind == "agent.registered" else "taskId": subject}


def _command(line: Line) -> Any:
    """The command that a call was, as far as the witness asks."""
    parts = line["path"].split("/")
    agent = line["body"].get("agentId", "")
    if parts[1] == "tasks":
        return ClaimTask(parts[2], agent)
    if parts[1] == "claims":
        return CompleteClaim(parts[2])
    return ClaimNext(parts[2], agent)


def _bound(calls: list[Call], head: int) -> None:
    """Where the ledger stood at least when each call began, and at most when it ended, as other calls tell."""
    recorded = [call for call in calls if call.told is not None and call.told.records]
    by_end = sorted((call.ended, call.told.records[0].sequence) for call in recorded if call.told is not None)
    ends = [ended for ended, _ in by_end]
    highest = list(accumulate((place for _, place in by_end), max, initial=0))
    # A record that answered an earlier call tells nothing of when this one ended.
    by_start = sorted(
        (call.began, call.told.records[0].sequence)
        for call in recorded
        if call.told is not None and not call.told.repeated
    )
    starts = [began for began, _ in by_start]
    lowest = list(accumulate((place for _, place in reversed(by_start)), min, initial=head + 1))[::-1]
    for call in calls:
        call.first = highest[bisect_left(ends, call.began)]
        call.last = lowest[bisect_right(starts, call.ended)] - 1
