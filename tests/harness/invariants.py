"""The invariants of the ledger, one function each: they read records in order and raise AssertionError.

They are written from the documents, not from the code: the states come from the state-machine contract, and no
invariant calls a reducer. Every tier of tests runs them on every ledger that it has created.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from redkey.ledger.chain import verify_records
from redkey.ledger.merkle import Edge
from redkey.ledger.ports import Reader
from redkey.ledger.record import EMPTY_HEAD, Record
from redkey.readmodel.counted import counters_now
from redkey.readmodel.digest import replay_digest, replay_rows, rows_digest, stored_rows

_CONTRACT = Path(__file__).parents[2] / "contracts/agent-wire/v1.1/task-state-machine.json"
_MACHINE = json.loads(_CONTRACT.read_text())
TERMINAL = {name for name, state in _MACHINE["states"].items() if state["terminal"]}
HELD = {name for name, state in _MACHINE["states"].items() if state["held"]}
_MOVES = {(state, row["on"]): row["to"] for row in _MACHINE["transitions"] for state in row["from"]}
# Wires by which a holder acts; each names the claim it acts under.
_ACTS = frozenset(
    {
        "task.started",
        "task.released",
        "task.plan.created",
        "task.usage_reported",
        "task.progress",
        "task.blocked",
        "task.complete",
        "artifact.ready",
        "task.lease_expired",
        "task.stalled",
    }
)
# Wires that end a hold without a winner.
_LETS_GO = (
    "task.released",
    "task.lease_expired",
    "task.stalled",
    "task.blocked",
    "task.cancelled",
    "task.failed",
)

Wire = dict[str, Any]


def decode(records: Iterable[Record]) -> list[Wire]:
    return [json.loads(record.wire) for record in records]


def read_all(reader: Reader, topic: str) -> list[Record]:
    found: list[Record] = []
    while page := reader.read(topic, len(found), 1000):
        found += page
    return found


def check_topic(reader: Reader, topic: str, *, void_allowed: bool = False) -> list[Wire]:
    """Check everything that one topic shows; return its wires for further checks."""
    records = read_all(reader, topic)
    chain_is_whole(records)
    wires = decode(records)
    void = void_sequences(reader, topic)
    assert void_allowed or not void, f"void records {sorted(void)[:5]} on a sequenced store"
    applied = [wire for sequence, wire in enumerate(wires, 1) if sequence not in void]
    holds_are_single(applied)
    only_listed_transitions(applied)
    terminal_streams_are_immutable(applied)
    attempts_are_answered_once(applied)
    streams_have_no_gap(wires)
    requests_are_recorded_once(applied)
    rows_are_the_replay(reader, topic)
    every_record_is_metered_once(reader, topic, records)
    return wires


def void_sequences(reader: Reader, topic: str) -> set[int]:
    found: set[int] = set()
    after = ""
    while rows := reader.rows(topic, "void", None, (0, after), 500):
        found.update(int(row.key) for row in rows)
        after = rows[-1].key
    return found


def holds_are_single(wires: Sequence[Wire]) -> None:
    """I1, I5: at most one hold per attempt at every place; an act of a holder names the claim that holds then."""
    holds: dict[str, str] = {}
    expired: dict[str, str] = {}
    for place, wire in enumerate(wires, 1):
        stream, kind, payload = wire["stream"]["stream_id"], wire["type"], wire["payload"]
        if kind == "task.claimed":
            assert stream not in holds, f"{place}: {payload['claim_id']} over {holds.get(stream)}"
            holds[stream] = payload["claim_id"]
            expired.pop(stream, None)
        elif kind == "task.lease_extended" and payload.get("reacquired"):
            assert stream not in holds, f"{place}: {holds.get(stream)} holds it"
            assert expired.get(stream) == payload["claim_id"], f"{place}: not the last holder"
            holds[stream] = expired.pop(stream)
        elif kind in _ACTS or kind == "task.lease_extended" or (kind == "task.failed" and "claim_id" in payload):
            assert holds.get(stream) == payload["claim_id"], f"{place}: {kind} by {payload['claim_id']}, not the holder"
        if kind in ("task.lease_expired", "task.stalled"):
            expired[stream] = holds.pop(stream)
        elif kind in ("task.released", "task.blocked", "task.complete", "task.failed", "task.cancelled"):
            holds.pop(stream, None)
            expired.pop(stream, None)


def only_listed_transitions(wires: Sequence[Wire]) -> None:
    """I9: what the contract does not list does not occur."""
    states: dict[str, str] = {}
    before_expiry: dict[str, str] = {}
    for place, wire in enumerate(wires, 1):
        stream, kind = wire["stream"]["stream_id"], wire["type"]
        if not stream.startswith("task:"):
            continue
        state = states.get(stream, _MACHINE["initial"])
        to = _MOVES.get((state, kind))
        assert to is not None, f"{place}: {kind} in state {state}"
        if kind in ("task.lease_expired", "task.stalled"):
            before_expiry[stream] = state
        states[stream] = before_expiry[stream] if to == "resume" else state if to == "same" else to


def terminal_streams_are_immutable(wires: Sequence[Wire]) -> None:
    """I4: no wire follows the terminal wire on a task's stream."""
    ended: dict[str, int] = {}
    for place, wire in enumerate(wires, 1):
        stream = wire["stream"]["stream_id"]
        if stream.startswith("task:"):
            assert stream not in ended, f"{place}: {wire['type']} after the end at {ended.get(stream)}"
            if wire["state"]["terminal"] if "state" in wire else False:
                ended[stream] = place


def attempts_are_answered_once(wires: Sequence[Wire]) -> None:
    """I8: every attempt is won, missed or rejected, once; a miss names the claim that held or had completed the task at
    some place between the attempt and its answer (on a sequenced store they are adjacent)."""
    asked: dict[str, str] = {}
    answered: dict[str, str] = {}
    winner: dict[str, tuple[str, str]] = {}
    lost_to: dict[str, set[tuple[str, str]]] = {}

    def wins(task_id: str, claim_id: str, agent_id: str) -> None:
        winner[task_id] = (claim_id, agent_id)
        for attempt, names in lost_to.items():
            if asked[attempt] == task_id:
                names.add(winner[task_id])

    for place, wire in enumerate(wires, 1):
        kind, payload, stream = wire["type"], wire["payload"], wire["stream"]["stream_id"]
        if kind == "task.claim_attempted":
            assert payload["claim_id"] not in asked, f"{place}: the claim id was given before"
            asked[payload["claim_id"]] = payload["task_id"]
            lost_to[payload["claim_id"]] = {winner[payload["task_id"]]} if payload["task_id"] in winner else set()
        elif kind in ("task.claimed", "task.claim_missed", "task.claim_rejected"):
            claim_id = payload["claim_id"]
            assert claim_id in asked, f"{place}: nobody attempted {claim_id}"
            assert claim_id not in answered, f"{place}: {claim_id} was answered before: {answered.get(claim_id)}"
            answered[claim_id] = kind
            names = lost_to.pop(claim_id)
            if kind == "task.claimed":
                wins(asked[claim_id], claim_id, payload["agent_id"])
            elif kind == "task.claim_missed":
                told = (payload["winning_claim_id"], payload["winning_agent_id"])
                assert told in names, f"{place}: {told} was named, {names} won"
        elif kind in _LETS_GO:
            winner.pop(stream.split(":")[1], None)
        elif kind == "task.lease_extended" and payload.get("reacquired"):
            wins(stream.split(":")[1], payload["claim_id"], payload["agent_id"])
    assert asked.keys() == answered.keys(), f"unanswered: {sorted(asked.keys() - answered.keys())[:3]}"


def streams_have_no_gap(wires: Sequence[Wire]) -> None:
    """On a sequenced store a stream counts 1, 2, 3 without gaps, and every wire id is unique."""
    counts: dict[str, int] = {}
    seen: set[str] = set()
    for place, wire in enumerate(wires, 1):
        stream = wire["stream"]["stream_id"]
        counts[stream] = counts.get(stream, 0) + 1
        assert wire["stream"]["stream_seq"] == counts[stream], f"{place}: {stream} counts {wire['stream']}"
        assert wire["wire_id"] not in seen, f"{place}: the wire id is repeated"
        seen.add(wire["wire_id"])


def requests_are_recorded_once(wires: Sequence[Wire]) -> None:
    """I7: a request with a key is on the ledger once."""
    seen: dict[str, int] = {}
    for place, wire in enumerate(wires, 1):
        idem = wire["payload"].get("idem")
        if idem is not None:
            assert idem not in seen, f"{place}: the request was recorded at {seen.get(idem)}"
            seen[idem] = place


def chain_is_whole(records: Sequence[Record]) -> None:
    """I6: sequences 1..n without gaps; times and running hashes follow each other."""
    _, damages = verify_records(EMPTY_HEAD, Edge(), records)
    assert not damages, damages[:3]


def rows_are_the_replay(reader: Reader, topic: str) -> None:
    """I3: the stored rows are, byte for byte, the result of a replay."""
    if rows_digest(reader, topic) != replay_digest(reader, topic):
        stored = {(row.kind, row.key): row for row in stored_rows(reader, topic)}
        given = replay_rows(reader, topic)
        differ = sorted(key for key in stored.keys() | given.keys() if stored.get(key) != given.get(key))
        raise AssertionError([(key, stored.get(key), given.get(key)) for key in differ[:2]])


def every_record_is_metered_once(reader: Reader, topic: str, records: Sequence[Record]) -> None:
    """The usage counters match the ledger: every event is counted once, with its bytes."""
    counts = {name: amount for name, amount in counters_now(reader, topic).items() if name.startswith("type/")}
    events = sum(amount for name, amount in counts.items() if name.endswith("/events"))
    size = sum(amount for name, amount in counts.items() if name.endswith("/bytes"))
    assert (events, size) == (len(records), sum(len(record.wire) for record in records))


def is_recorded(records: Sequence[Record], sequence: int, wire: Wire) -> None:
    """I2: what was acknowledged is on the ledger, at the reported place and unchanged."""
    assert sequence <= len(records), f"record {sequence} of an acknowledged call is lost"
    assert json.loads(records[sequence - 1].wire) == wire, f"record {sequence} is not what was acknowledged"


def follower_saw_everything(seen: Sequence[int], head: int) -> None:
    """I11: a follower has seen every record once, in order, without gaps."""
    assert list(seen) == list(range(1, head + 1))


def no_foreign_bytes(answer: bytes, canaries: Iterable[bytes]) -> None:
    """I14: an answer contains nothing of another tenant."""
    found = [canary for canary in canaries if canary in answer]
    assert not found, found


def no_secrets(records: Iterable[Record], patterns: Iterable[bytes]) -> None:
    """I15: the ledger contains no secret."""
    for record in records:
        found = [pattern for pattern in patterns if pattern in record.wire]
        assert not found, (record.sequence, found)
