"""The end of a hold: complete the task with its artifacts and outputs, or fail the attempt."""

from __future__ import annotations

import msgspec

from redkey.commands import holds
from redkey.commands.actor import Actor
from redkey.commands.artifacts import artifact_draft, replacement_drafts, with_artifacts
from redkey.commands.claims import (
    ClaimNext,
    CompleteClaim,
    FailClaim,
    acting_agent,
    stream,
)
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft, Ids
from redkey.commands.past import Past
from redkey.ledger.content import ref
from redkey.ledger.ports import Content
from redkey.reducers.claim import CLAIM_LIFE_NANOSECONDS
from redkey.reducers.entities import Task
from redkey.reducers.outputs import (
    ALLOW,
    INLINE_LIMIT,
    NAMING_RULES,
    manifest,
    missing_outputs,
    unverified_outputs,
    unverified_places,
)
from redkey.reducers.spending import NANO, SPENDING_RULES, nano_usd
from redkey.reducers.task import retries
from redkey.reducers.world import SECOND, World
from redkey.wire.events import (
    TaskComplete,
    TaskFailed,
    TaskUsageReported,
    TaskVerification,
)

# The largest number of artifact ids on a completion before there were manifests.
_FIRST_RULES_LIMIT = 6


def complete(world: World, command: CompleteClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """Complete the task with its artifacts, and report the costs that were not reported yet."""
    hold = holds.holding(world, past, actor, command.claim_id, now, ids)
    _check_next(world, actor, command.claim_next)
    task, added = with_artifacts(world, hold.task, command)
    for artifact, record in added:
        draft = artifact_draft(world, actor, hold, record, leads=True)
        draft.extensions = artifact.extensions
        hold.drafts += [draft, *replacement_drafts(world, past, artifact, draft, "/artifacts")]
    outputs = _outputs(world, task, command)
    duration = command.duration_seconds
    if duration is None:
        duration = max(0, now - (task.started_at or task.claimed_at) + SECOND // 2) // SECOND
    reported = task.claim_nano_usd
    if nano_usd(command.cost_usd) > reported and world.workspace.rules >= SPENDING_RULES:
        # Only reported costs count, so the completion reports those that were not reported yet.
        usage = TaskUsageReported(
            claim_id=command.claim_id,
            agent_id=hold.agent.agent_id,
            cost_usd=(nano_usd(command.cost_usd) - reported) / NANO,
        )
        spent = Draft(usage, stream(task), task.context_id, actor.sender(world), causation_id=hold.cause, leads=True)
        hold.drafts.append(spent)
    payload = TaskComplete(
        claim_id=command.claim_id,
        agent_id=hold.agent.agent_id,
        artifact_ids=outputs.named if outputs.manifest is None else (),
        manifest_ref=None if outputs.manifest is None else ref(outputs.manifest),
        unverified=outputs.unverified or None,
        cost_usd=command.cost_usd,
        duration_seconds=min(duration, CLAIM_LIFE_NANOSECONDS // SECOND),
        verification=TaskVerification(mechanical="pass", semantic=command.semantic, attempts=command.attempts),
        output_ref=command.output_ref,
    )
    decision = holds.act(world, actor, hold, payload)
    if outputs.manifest is not None:
        decision.drafts[-1].contents = (outputs.manifest,)
    return decision


class _Outputs(msgspec.Struct):
    """The artifacts that a completion names, and the positions of the unverified ones."""

    named: tuple[str, ...]
    unverified: tuple[int, ...] = ()
    # Set when there are too many artifacts to name on the wire.
    manifest: Content | None = None


def _outputs(world: World, task: Task, command: CompleteClaim) -> _Outputs:
    """Choose the artifacts of a completion: those the caller lists, or all ready ones; and every required output."""
    ready, rules = task.ready_artifacts(), world.workspace.rules
    listed = command.artifact_ids or tuple(ready)
    if rules < NAMING_RULES:
        listed = command.artifact_ids or listed[:_FIRST_RULES_LIMIT]
    else:
        listed += tuple(key for key, artifact in ready.items() if artifact.name in task.outputs and key not in listed)
    missing = missing_outputs(task.outputs, ready, listed, rules)
    if missing:
        detail = (
            f"No ready artifact on this attempt for: {', '.join(missing[:8])}. Complete with `artifacts` or with an "
            f"`output` that has a field of this name, or add it before: POST /claims/{command.claim_id}/artifacts."
        )
        raise Refused(422, "missing_artifact", detail, "/artifactIds")
    if rules < NAMING_RULES:
        return _Outputs(listed)
    by_manifest = len(listed) > INLINE_LIMIT
    named = tuple(sorted(ready)) if by_manifest else listed
    judged = {
        key: msgspec.structs.replace(artifact, unverified=True) if key in command.unseen else artifact
        for key, artifact in ready.items()
    }
    unverified = unverified_outputs(task.outputs, judged, named)
    if unverified and world.workspace.unverified_outputs != ALLOW:
        names = ", ".join(unverified[:8])
        detail = f"RedKey did not see the bytes of these required outputs: {names}."
        raise Refused(422, "unverified_artifact", detail, "/artifactIds")
    return _Outputs(named, unverified_places(judged, named), manifest(ready) if by_manifest else None)


def fail(world: World, command: FailClaim, actor: Actor, now: int, ids: Ids, past: Past) -> Decision:
    """End the attempt as failed; another one follows if the policy has attempts left."""
    hold = holds.holding(world, past, actor, command.claim_id, now, ids)
    _check_next(world, actor, command.claim_next)
    payload = TaskFailed(
        claim_id=command.claim_id,
        agent_id=hold.agent.agent_id,
        kind=command.kind,
        retry=retries(hold.task, command.kind),
        reason_ref=command.reason_ref,
    )
    return holds.act(world, actor, hold, payload)


def _check_next(world: World, actor: Actor, command: ClaimNext | None) -> None:
    """Refuse a completion whose `claim_next` could not be decided, so that nothing is recorded of either."""
    if command is not None:
        acting_agent(world, actor, command.agent_id)
        if command.queue_id not in world.queues:
            raise not_found("queue")
