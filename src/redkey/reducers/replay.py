"""Replay: fold ordered wires of any number of streams into the exact state of tasks, artifacts and projects.

Wires are folded in the given order, which is the ledger's: `stream_seq` is only a producer's hint, and its gaps and
repeats are listed (`disorder`). A repeated wire id is void. The attempts at one task follow the same rules as in a
workspace: each starts after the end of the one before, in the same context. Otherwise streams are independent; claim
wires on agents' streams are counted per agent.

Wires must be valid by their schemas (`redkey.wire.validate`); a wire that is void by state is kept with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, cast

import msgspec

from redkey.reducers.artifact import Artifact
from redkey.reducers.attempt import ATTEMPT_ENDED, ATTEMPT_EXISTS, CONTEXT_CHANGED, RETRIED, TaskEvent
from redkey.reducers.grouping import Grouping
from redkey.reducers.project import Project, Task, projects_of, tasks_of
from redkey.reducers.stream import Attempt, Terms, apply, begin
from redkey.wire.envelope import AnyWire, Wire
from redkey.wire.events import (
    AnyPayload,
    ArtifactReady,
    ArtifactSuperseded,
    GateRejected,
    TaskCreated,
    WorkflowStarted,
    WorkspaceCreated,
    WorkspacePolicySet,
    WorkspaceRulesRaised,
)
from redkey.wire.ids import parse_stream

DUPLICATE_WIRE = "duplicate_wire"
_CLAIM_WIRES = {
    "task.claim_attempted": "attempted",
    "task.claim_missed": "missed",
    "task.claim_rejected": "rejected",
}

# Looks up the outputs that a task.created requires by a pinned structure; None when the structure is not at hand.
Outputs = Callable[[TaskCreated], Iterable[str] | None]


class Void(msgspec.Struct, frozen=True, gc=False):
    """A wire that was void, and why."""

    wire_id: str
    type: str
    stream_id: str
    reason: str


class Disorder(msgspec.Struct, frozen=True, gc=False):
    """A wire whose `stream_seq` does not follow the one before it in its stream: wires are missing or repeated."""

    wire_id: str
    stream_id: str
    code: str
    stream_seq: int
    expected: int


class Replayed:
    """The state after some wires; `apply` folds another one."""

    def __init__(self, outputs: Outputs | None = None) -> None:
        self.attempts: dict[str, Attempt] = {}
        self.artifacts: dict[str, Artifact] = {}
        # Projects and phases, by their own streams.
        self.grouping = Grouping()
        self.claims: dict[str, dict[str, int]] = {}
        self.void: list[Void] = []
        self.disorder: list[Disorder] = []
        self.wires = 0
        # How many wires were of streams that this package does not fold: queues, roles, workflows, workspaces.
        self.others = 0
        # The workspace settings, from the workspace's own wires.
        self.terms = Terms()
        self._outputs = outputs
        self._seen: set[str] = set()
        # Stream -> its highest number; task -> its latest attempt; tasks whose completion was rejected at a gate.
        self._numbers: dict[str, int] = {}
        self._latest: dict[str, Attempt] = {}
        self._rejected: set[str] = set()

    def apply(self, wire: AnyWire) -> str | None:
        """Fold one wire; return None if it applied or concerns another stream kind, else why it is void."""
        self.wires += 1
        wire_id = wire.wire_id
        if wire_id in self._seen:
            reason: str | None = DUPLICATE_WIRE
        else:
            self._number(wire)
            reason = self._fold(wire)
        self._seen.add(wire_id)
        if reason is not None:
            self.void.append(Void(wire_id, wire.type, wire.stream.stream_id, reason))
        return reason

    def _number(self, wire: AnyWire) -> None:
        """List a `stream_seq` that does not follow the one before it in its stream."""
        stream_id, number = wire.stream.stream_id, wire.stream.stream_seq
        expected = self._numbers.get(stream_id, 0) + 1
        if number != expected:
            code = "stream_seq_gap" if number > expected else "stream_seq_repeated"
            self.disorder.append(Disorder(wire.wire_id, stream_id, code, number, expected))
        self._numbers[stream_id] = max(number, expected - 1)

    def _fold(self, wire: AnyWire) -> str | None:
        stream_id, payload = wire.stream.stream_id, wire.payload
        attempt = self.attempts.get(stream_id)
        if attempt is not None:
            if self._latest[attempt.task_id] is not attempt:
                return ATTEMPT_EXISTS if type(payload) is TaskCreated else ATTEMPT_ENDED
            reason = apply(attempt, cast("Wire[TaskEvent]", wire), terms=self.terms)
            if reason is None and type(payload) is ArtifactReady:
                self._version(attempt, payload.artifact_id)
            return reason
        stream = parse_stream(stream_id)
        if type(payload) is ArtifactSuperseded:
            # As in a workspace, the replaced version may come before the first of these wires.
            known = self.artifacts.get(stream.subject)
            if known is not None:
                known.superseded.append(payload)
            return None
        if stream.kind in ("project", "phase"):
            return self.grouping.apply(stream.subject, payload)
        if type(payload) is WorkflowStarted and payload.phase_id is not None:
            return self.grouping.start(stream.subject, payload.phase_id)
        if stream.kind != "task":
            self._beside(wire.type, stream.kind, stream.subject)
            self._decide(payload)
            return None
        refused = self._refuse_attempt(wire, stream.subject, stream.attempt)
        if refused is not None:
            return refused
        attempt = begin(stream.subject, stream.attempt)
        # The schemas allow only task events on a task stream.
        reason = apply(attempt, cast("Wire[TaskEvent]", wire), terms=self.terms)
        if reason is None:
            # A stream is stored only once a wire applied, so a stream that never began takes no memory.
            self.attempts[stream_id] = self._latest[stream.subject] = attempt
            self._rejected.discard(stream.subject)
            if attempt.outputs is None and self._outputs is not None and isinstance(payload, TaskCreated):
                required = self._outputs(payload)
                attempt.outputs = None if required is None else tuple(required)
        return reason

    def _refuse_attempt(self, wire: AnyWire, task_id: str, number: int) -> str | None:
        """Why the first wire of an attempt is void, judged by the earlier attempts at its task."""
        before = self._latest.get(task_id)
        if before is None:
            return None
        if type(wire.payload) is not TaskCreated:
            return ATTEMPT_ENDED if number < before.attempt else None
        ended = before.state in RETRIED or task_id in self._rejected
        if not ended or number != before.attempt + 1:
            return ATTEMPT_EXISTS
        return CONTEXT_CHANGED if wire.stream.context_id != before.context_id else None

    def _decide(self, payload: AnyPayload) -> None:
        """Store workspace settings, and gate rejections, that later attempts are judged by."""
        if type(payload) is GateRejected and payload.task_id is not None:
            self._rejected.add(payload.task_id)
        if type(payload) is WorkspaceCreated or type(payload) is WorkspaceRulesRaised:
            self.terms.rules = payload.rules
        elif type(payload) is WorkspacePolicySet and payload.unverified_outputs is not None:
            self.terms.unverified_outputs = payload.unverified_outputs

    def _version(self, attempt: Attempt, artifact_id: str) -> None:
        version = attempt.artifacts[artifact_id]
        known = self.artifacts.get(artifact_id)
        if known is None:
            self.artifacts[artifact_id] = Artifact(artifact_id, [version])
        else:
            known.versions.append(version)

    def _beside(self, event: str, kind: str, subject: str) -> None:
        outcome = _CLAIM_WIRES.get(event)
        if kind != "agent" or outcome is None:
            self.others += 1
            return
        counts = self.claims.setdefault(subject, dict.fromkeys(_CLAIM_WIRES.values(), 0))
        counts[outcome] += 1

    def tasks(self) -> list[Task]:
        """All tasks, ordered by id."""
        return tasks_of(self.attempts.values())

    def projects(self) -> list[Project]:
        """All contexts that have tasks, ordered by id."""
        return projects_of(self.tasks())

    def as_json(self) -> dict[str, Any]:
        """The whole state as JSON; the same wires always give the same canonical bytes."""
        tasks = self.tasks()
        reasons: dict[str, int] = {}
        for void in self.void:
            reasons[void.reason] = reasons.get(void.reason, 0) + 1
        return {
            "counts": {
                "wires": self.wires,
                "applied": self.wires - self.others - len(self.void),
                "void": len(self.void),
                "others": self.others,
                "reasons": reasons,
            },
            "void": msgspec.to_builtins(self.void),
            "disorder": msgspec.to_builtins(self.disorder),
            "tasks": {task.task_id: task.as_json() for task in tasks},
            "artifacts": {key: artifact.as_json() for key, artifact in sorted(self.artifacts.items())},
            "projects": {project.context_id: project.as_json() for project in projects_of(tasks)},
            **self.grouping.as_json(),
            "claims": {agent_id: dict(counts) for agent_id, counts in sorted(self.claims.items())},
        }


def replay(wires: Iterable[AnyWire], *, places: int | None = None, outputs: Outputs | None = None) -> Replayed:
    """The state after all wires, or after the first `places` of them."""
    replayed = Replayed(outputs)
    for wire in wires if places is None else islice(wires, places):
        replayed.apply(wire)
    return replayed


def replay_stream(wires: Iterable[AnyWire], stream_id: str, *, places: int | None = None) -> Replayed:
    """The state of one stream alone, from wires of any streams: after its first `places` wires, or all of them."""
    return replay((wire for wire in wires if wire.stream.stream_id == stream_id), places=places)
