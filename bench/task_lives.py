"""Wires to measure with: whole lives of tasks, valid by schema and applied by the reducers, in ledger order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redkey.wire.catalogue import VERSION, catalogue
from redkey.wire.ids import task_stream, ulid

_START_MILLISECONDS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
LIFE = (
    "task.created",
    "task.available",
    "task.claim_attempted",
    "task.claimed",
    "task.started",
    "task.lease_extended",
    "artifact.ready",
    "task.complete",
)


def task_lives(count: int) -> Iterator[dict[str, Any]]:
    """The wires of `count` tasks, one life after the other: len(LIFE) wires each."""
    for number in range(count):
        made = {kind: _id(kind, number) for kind in ("task", "clm", "agt", "art")}
        stream_id, places = task_stream(made["task"], 1), {}
        for event, payload in zip(LIFE, _payloads(made, number), strict=True):
            own = f"agent:{made['agt']}" if event == "task.claim_attempted" else stream_id
            places[own] = places.get(own, 0) + 1
            state = catalogue()[event].state
            yield {
                "wire": VERSION,
                "wire_id": _id("wire", number, event),
                "type": event,
                "sender": "system",
                "ts": "2026-01-01T00:00:00Z",
                "stream": {"stream_id": own, "stream_seq": places[own], "context_id": "queue:queue_bench"},
                **({"state": state} if state else {}),
                "payload": payload,
            }


def _payloads(made: dict[str, str], number: int) -> list[dict[str, Any]]:
    sha256 = f"{number:064x}"
    ref = {"sha256": sha256, "bytes": 512}
    claim = {"claim_id": made["clm"], "agent_id": made["agt"]}
    lease = {"lease_expires_at": "2026-01-01T00:15:00Z"}
    artifact = {"artifact_id": made["art"], "name": "report", "version": 1, "content_ref": ref}
    cost = {"cost_usd": 0.25, "duration_seconds": 60}
    return [
        {"queue_id": "queue_bench", "priority": "normal", "content_ref": ref, "outputs": ["report"]},
        {},
        {"task_id": made["task"], "attempt": 1, **claim, "lease_seconds": 900},
        claim | lease,
        claim,
        claim | lease,
        {"claim_id": made["clm"], **artifact, "sha256": sha256, "bytes": 512, "readiness": "final"},
        claim | cost | {"artifact_ids": [made["art"]], "verification": _PASSED},
    ]


_PASSED = {"mechanical": "pass", "semantic": "skipped", "attempts": 1}


def _id(kind: str, number: int, event: str = "") -> str:
    place = number * len(LIFE) + (LIFE.index(event) if event else 0)
    return f"{kind}_{ulid(_START_MILLISECONDS + number, place.to_bytes(10))}"
