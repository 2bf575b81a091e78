"""Hold the histories of clients against a ledger: could all of it have happened one after another, in ledger order?

A history is one line of JSON for each thing that a client saw: `invoke` before a call is sent, `ok` when it was
answered, `again` when the same request was sent later under its key. A call without an answer may have happened or
not. Nothing of `redkey` is imported here: the rules of claims are written a second time.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from tests.history.ledger_file import Finding, Ledger, Wire

# Answers that stand for a record of an earlier call: an agent that asks again for a task hears the same again.
_TOLD_AGAIN = ("missed", "rejected")
_ENDS = {"task.complete": True, "task.failed": True, "task.released": False, "task.blocked": False}
_STATUS = {
    "task.claimed": "claimed",
    "task.claim_missed": "missed",
    "task.claim_rejected": "rejected",
    "task.started": "started",
    "task.complete": "completed",
    "task.failed": "failed",
    "task.released": "released",
}


@dataclass
class Call:
    """One call of a client, with all its tries. `ended` is endless for one that nobody answered."""

    path: str
    key: str
    began: float
    ended: float = float("inf")
    status: int = 0
    text: str = ""
    tries: int = 0
    # Where the ledger stood at least when it began and at most when it ended, and its own record.
    first: int = 0
    last: int = 0
    place: int = 0

    @property
    def reply(self) -> Any:
        return json.loads(self.text)


@dataclass
class Attempt:
    """Who holds one attempt at a task."""

    holder: str = ""
    winner: str = ""
    over: bool = False


@dataclass
class Checker:
    """Everything that was found."""

    ledger: Ledger
    findings: list[Finding] = field(default_factory=list)
    # From which record to before which record each claim holds.
    holds: dict[str, list[int]] = field(default_factory=dict)

    def find(self, code: str, text: str) -> None:
        self.findings.append(Finding(code, text))

    # The ledger by itself.

    def check_ledger(self) -> None:
        attempts: dict[str, Attempt] = {}
        asked: dict[str, int] = {}
        answered: dict[str, str] = {}
        requests: set[str] = set()
        for sequence, wire in self.ledger.wires.items():
            kind, payload = wire["type"], wire["payload"]
            request = payload.get("idem", "")
            if request and request in requests:
                self.find("repeated", f"record {sequence} is the second one of a request")
            requests.add(request)
            if kind == "task.claim_attempted":
                asked[payload["claim_id"]] = sequence
            if kind in ("task.claimed", "task.claim_missed", "task.claim_rejected"):
                claim = payload["claim_id"]
                if claim not in asked:
                    self.find("invented", f"record {sequence} answers {claim}, which nobody attempted")
                if claim in answered:
                    self.find("answered_twice", f"record {sequence} answers {claim}, which was {answered[claim]}")
                answered[claim] = kind
            self._fold(sequence, wire, attempts)
        for claim in asked.keys() - answered.keys():
            self.find("unanswered", f"{claim} was attempted at record {asked[claim]} and never answered")

    def _fold(self, sequence: int, wire: Wire, attempts: dict[str, Attempt]) -> None:
        kind, payload, stream = wire["type"], wire["payload"], wire["stream"]["stream_id"]
        if kind == "task.claim_missed":
            attempt = attempts.get(f"task:{payload['task_id']}:attempt:{payload['attempt']}", Attempt())
            if payload["winning_claim_id"] not in (attempt.holder, attempt.winner if attempt.over else ""):
                self.find("wrong_winner", f"record {sequence} names {payload['winning_claim_id']}, {attempt} is true")
        if not stream.startswith("task:"):
            return
        attempt = attempts.setdefault(stream, Attempt())
        if kind == "task.claimed":
            if attempt.holder or attempt.over:
                self.find("double_winner", f"record {sequence} gives {stream} to {payload['claim_id']} too: {attempt}")
            attempt.holder = attempt.winner = payload["claim_id"]
            self.holds[attempt.holder] = [sequence, 1 << 60]
        elif kind == "task.started" or kind in _ENDS:
            if payload["claim_id"] != attempt.holder:
                self.find("not_holder", f"record {sequence} ({kind}) is of {payload['claim_id']}: {attempt}")
            if kind in _ENDS:
                if attempt.holder:
                    self.holds[attempt.holder][1] = sequence
                attempt.holder, attempt.over = "", _ENDS[kind]

    # The calls against the ledger.

    def check_calls(self, calls: Sequence[Call]) -> None:
        places = {wire["wire_id"]: sequence for sequence, wire in self.ledger.wires.items()}
        for call in calls:
            if 200 <= call.status < 300:
                for reply in (call.reply, call.reply.get("next") or {}):
                    self._check_answer(call, reply, places)
        self._check_order(calls)
        self._bound(calls)
        for call in calls:
            if call.status == 409:
                self._check_refusal(call)
            elif call.status >= 300:
                self.find("strange_answer", f"{call.path} was answered with {call.status}: {call.text[:200]}")
        for kind, path in (("task.created", "/tasks"), ("agent.registered", "/agents/register-card")):
            recorded = sum(wire["type"] == kind for wire in self.ledger.wires.values())
            sent = sum(call.path.endswith(path) for call in calls)
            if recorded > sent:
                self.find("invented", f"{recorded} records of {kind}, and {sent} calls asked for one")

    def _check_answer(self, call: Call, reply: Any, places: dict[str, int]) -> None:
        if "eventId" not in reply:
            return
        place = places.get("wire_" + reply["eventId"][4:])
        if place is None:
            self.find("lost", f"{call.path} was acknowledged as {reply['eventId']}, which is not on the ledger")
            return
        wire = self.ledger.wires[place]
        payload, status = wire["payload"], _STATUS.get(wire["type"])
        right = [
            status is None or reply["status"] == status,
            status is None or status in _TOLD_AGAIN or reply["claimId"] == payload["claim_id"],
            status != "missed" or reply["winningClaimId"] == payload["winning_claim_id"],
            status != "claimed" or (reply["taskId"], reply["agentId"]) == (_subject(wire), payload["agent_id"]),
            wire["type"] != "task.created" or reply["taskId"] == _subject(wire),
            wire["type"] != "agent.registered" or reply["agentId"] == _subject(wire),
        ]
        if not all(right):
            self.find("changed", f"{call.path} was answered {reply}, record {place} is {wire}")
        if reply.get("status") not in _TOLD_AGAIN and not call.place:
            call.place = place

    def _check_order(self, calls: Sequence[Call]) -> None:
        """A call that began after another was answered has its record after the other's."""
        recorded = [call for call in calls if call.place]
        by_end = sorted(recorded, key=lambda call: call.ended)
        ends = [call.ended for call in by_end]
        highest = list(accumulate((call.place for call in by_end), max, initial=0))
        for call in recorded:
            before = highest[bisect_left(ends, call.began)]
            if call.place <= before:
                text = f"{call.path} began after record {before} was acknowledged, and has record {call.place}"
                self.find("order", text)

    def _bound(self, calls: Sequence[Call]) -> None:
        by_end = sorted((call.ended, call.place) for call in calls if call.place)
        by_start = sorted((call.began, call.place) for call in calls if call.place)
        ends, starts = [at for at, _ in by_end], [at for at, _ in by_start]
        highest = list(accumulate((place for _, place in by_end), max, initial=0))
        lowest = list(accumulate((place for _, place in reversed(by_start)), min, initial=1 << 60))[::-1]
        for call in calls:
            call.first = highest[bisect_left(ends, call.began)]
            call.last = lowest[bisect_right(starts, call.ended)] - 1

    def _check_refusal(self, call: Call) -> None:
        """What a refusal says was true at some place while the call was under way."""
        code, claim = call.reply["code"], call.path.split("/")[2]
        if code != "lease_lost" or claim not in self.holds:
            self.find("strange_answer", f"{call.path} was refused with {code}")
            return
        begin, end = self.holds[claim]
        if begin <= call.first and end > call.last:
            text = f"{call.path} was told that its lease is lost, and held from {begin} to {end}"
            self.find("untrue_refusal", text)


def _subject(wire: Wire) -> str:
    subject: str = wire["stream"]["stream_id"].split(":")[1]
    return subject


def read_calls(lines: Iterable[str], checker: Checker) -> list[Call]:
    """The calls of a history, in the order in which they began."""
    calls: dict[str, Call] = {}
    for line in lines:
        seen = json.loads(line)
        if seen["event"] == "invoke":
            calls[seen["key"]] = Call(seen["path"], seen["key"], seen["at"])
            continue
        call = calls[seen["key"]]
        if seen["event"] == "ok":
            call.ended, call.status, call.text, call.tries = seen["at"], seen["status"], seen["reply"], seen["tries"]
        elif (seen["status"], seen["reply"]) != (call.status, call.text):
            text = f"{call.path} was answered {call.status} {call.text} and then {seen['status']} {seen['reply']}"
            checker.find("answer_changed", text)
    return list(calls.values())


def check_history(lines: Iterable[str], ledger: Ledger) -> tuple[list[Finding], list[Call]]:
    """Everything that is wrong with a ledger and with what its clients were told."""
    checker = Checker(ledger)
    calls = read_calls(lines, checker)
    checker.check_ledger()
    checker.check_calls(calls)
    return [*ledger.findings, *checker.findings], calls
