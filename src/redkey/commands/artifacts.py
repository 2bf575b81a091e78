"""Artifacts of a hold: add one, or its next version, and record what it replaces."""

from __future__ import annotations

import msgspec

from redkey.commands import holds
from redkey.commands.actor import Actor
from redkey.commands.claims import (
    AddArtifact,
    CompleteClaim,
    stream,
)
from redkey.commands.decision import Decision, Refused
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.commands.policies import check_rules
from redkey.reducers.entities import Artifact, Task
from redkey.reducers.outputs import (
    NAMING_RULES,
)
from redkey.reducers.task import LINEAGE_RULES
from redkey.reducers.world import World
from redkey.wire.events import (
    ArtifactReady,
    ArtifactSuperseded,
)
from redkey.wire.ids import parse_stream

# The largest number of artifacts of an attempt: all of them are in the task's row, which each one rewrites.
ARTIFACTS_LIMIT = 256
# Artifact wires name their agent from these rules on.
_ARTIFACT_AGENT_RULES = 2


def add_artifact(world: World, command: AddArtifact, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Add an artifact, or its next version."""
    hold = holds.holding(world, past, actor, command.claim_id, now, ids)
    added = artifact_draft(world, actor, hold, _ready(world, hold.task, command))
    return Decision([*hold.drafts, added, *replacement_drafts(world, past, command, added)])


def replacement_drafts(world: World, past: Past, command: AddArtifact, added: Draft, under: str = "") -> list[Draft]:
    """The record that another artifact is replaced by this one; the old one may be of a task that has ended."""
    """The record that another artifact is replaced by this one; what is replaced may be of a task that has ended."""
    if not command.supersedes:
        return []
    check_rules(world, LINEAGE_RULES)
    before, ready = past.artifact(command.supersedes), added.payload
    if before is None or command.supersedes == command.artifact_id or type(ready) is not ArtifactReady:
        detail = "There is no such artifact in this workspace, or it is the same one."
        raise Refused(422, "unknown_artifact", detail, f"{under}/supersedes")
    if before.superseded_by:
        detail = f"The artifact was already replaced by {before.superseded_by}; replace that one instead."
        raise Refused(409, "already_superseded", detail, f"{under}/supersedes")
    place = parse_stream(added.stream_id)
    payload = ArtifactSuperseded(
        version=before.version,
        by_artifact_id=command.artifact_id,
        by_version=ready.version,
        task_id=place.subject,
        attempt=place.attempt,
    )
    where = f"artifact:{command.supersedes}"
    draft = Draft(payload, where, added.context_id, added.sender, leads=added.leads, stream_seq=before.version)
    return [draft]


def _ready(world: World, task: Task, command: AddArtifact, under: str = "") -> ArtifactReady:
    """The payload for an artifact of the attempt; `under` is the artifact's place in the request."""
    before = next((artifact for artifact in task.artifacts if artifact.artifact_id == command.artifact_id), None)
    if before is None and not command.is_new:
        raise Refused(422, "unknown_artifact", "This attempt has no such artifact.", f"{under}/artifactId")
    if before is None and len(task.artifacts) >= ARTIFACTS_LIMIT:
        detail = f"An attempt has at most {ARTIFACTS_LIMIT} artifacts; put more into a manifest artifact."
        raise Refused(422, "artifacts_too_many", detail)
    if command.version not in (0, before.version + 1 if before is not None else 1):
        detail = "Another version of this artifact was added at the same time; retry the request."
        raise Refused(409, "artifact_changed", detail, f"{under}/artifactId")
    return ArtifactReady(
        claim_id=command.claim_id,
        artifact_id=command.artifact_id,
        name=command.name,
        version=before.version + 1 if before is not None else 1,
        content_ref=command.content_ref,
        sha256=command.sha256,
        bytes=command.bytes,
        readiness=command.readiness,
        derived_from=command.derived_from or None,
        uri=command.uri if command.uri and world.workspace.rules >= LINEAGE_RULES else None,
        unverified=True if command.unverified and world.workspace.rules >= NAMING_RULES else None,
    )


def with_artifacts(
    world: World, task: Task, command: CompleteClaim
) -> tuple[Task, list[tuple[AddArtifact, ArtifactReady]]]:
    """The task with the artifacts that come with its completion, and those artifacts with their payloads."""
    records: list[tuple[AddArtifact, ArtifactReady]] = []
    to_add = [(f"/artifacts/{index}", artifact) for index, artifact in enumerate(command.artifacts)]
    names = {artifact.name for artifact in task.ready_artifacts().values()}
    names |= {artifact.name for _, artifact in to_add if artifact.readiness != "draft"}
    # An output needs no substitute if its artifact was added after the request was read.
    to_add += [("/output", artifact) for artifact in command.outputs if artifact.name not in names]
    for under, new in to_add:
        record = _ready(world, task, new, under)
        records.append((new, record))
        stored = (new.sha256, new.bytes, new.content_ref.sha256)
        is_unverified = record.unverified is not None
        added = Artifact(new.artifact_id, new.name, new.readiness, record.version, *stored, is_unverified)
        others = tuple(other for other in task.artifacts if other.artifact_id != new.artifact_id)
        task = msgspec.structs.replace(task, artifacts=(*others, added))
    return task, records


def artifact_draft(
    world: World, actor: Actor, hold: holds.Hold, record: ArtifactReady, *, leads: bool = False
) -> Draft:
    """Name the agent of an artifact. If its sources leave no room on the wire, the sender names the agent instead."""
    task, sender = hold.task, actor.sender(world)
    if world.workspace.rules >= _ARTIFACT_AGENT_RULES and record.derived_from is None:
        record = msgspec.structs.replace(record, agent_id=hold.agent.agent_id)
    elif world.workspace.rules >= _ARTIFACT_AGENT_RULES and actor.is_runner:
        sender = f"agent:{hold.agent.slug}"
    return Draft(record, stream(task), task.context_id, sender, causation_id=hold.cause, leads=leads)
