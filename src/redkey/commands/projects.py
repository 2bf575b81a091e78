"""Projects and phases: create, change and complete them."""

from __future__ import annotations

from typing import Literal, final

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.decision import Decision, Refused, not_found
from redkey.commands.draft import Draft
from redkey.commands.policies import check_rules
from redkey.reducers.entities import Phase, Project
from redkey.reducers.projects import COMPLETED
from redkey.reducers.world import World
from redkey.wire.events import (
    AnyPayload,
    PhaseCompleted,
    PhaseCreated,
    PhaseUpdated,
    ProjectCompleted,
    ProjectCreated,
    ProjectUpdated,
    Ref,
)

PROJECT_RULES = 2


@final
class CreateProject(msgspec.Struct, frozen=True):
    """Create a project or, with `project_id`, a phase of one."""

    subject: str
    content_ref: Ref
    # The project that a phase belongs to; empty for a project.
    project_id: str = ""


@final
class ChangeProject(msgspec.Struct, frozen=True):
    """Change or complete a project or a phase."""

    kind: Literal["project", "phase"]
    subject: str
    status: str = ""
    content_ref: Ref | None = None
    completes: bool = False


def decide_project(world: World, command: CreateProject | ChangeProject, actor: Actor) -> Decision:
    """Decide a command about a project or a phase."""
    check_rules(world, PROJECT_RULES)
    if isinstance(command, CreateProject):
        return _create(world, command, actor)
    group = _live(world, command)
    if not command.completes:
        kind = ProjectUpdated if isinstance(group, Project) else PhaseUpdated
        return _record(world, group, kind(content_ref=command.content_ref, status=command.status or None), actor)
    if isinstance(group, Project):
        waiting = [phase.phase_id for phase in world.phases.values() if _is_open_in(phase, group.project_id)]
        what = "phases"
    else:
        waiting = [key for key, run in world.runs.items() if run.workflow.phase_id == group.phase_id]
        what = "runs"
    if waiting:
        detail = f"{len(waiting)} of its {what} are not completed: {', '.join(waiting[:8])}."
        raise Refused(409, f"{what}_open", detail)
    return _record(world, group, ProjectCompleted() if isinstance(group, Project) else PhaseCompleted(), actor)


def _is_open_in(phase: Phase, project_id: str) -> bool:
    return phase.project_id == project_id and phase.status != COMPLETED


def _create(world: World, command: CreateProject, actor: Actor) -> Decision:
    kind = "phase" if command.project_id else "project"
    if command.subject in (world.phases if command.project_id else world.projects):
        raise Refused(409, f"{kind}_exists", f"The {kind} {command.subject!r} already exists.")
    payload: AnyPayload = ProjectCreated(content_ref=command.content_ref)
    if command.project_id:
        project = world.projects.get(command.project_id)
        if project is None:
            raise not_found("project")
        if project.status == COMPLETED:
            raise Refused(409, "project_completed", "The project is completed and takes no more phases.")
        payload = PhaseCreated(project_id=command.project_id, content_ref=command.content_ref)
    context = f"project:{command.project_id or command.subject}"
    return Decision([Draft(payload, f"{kind}:{command.subject}", context, actor.sender(world))])


def _live(world: World, command: ChangeProject) -> Project | Phase:
    group = world.projects.get(command.subject) if command.kind == "project" else world.phases.get(command.subject)
    if group is None:
        raise not_found(command.kind)
    if group.status == COMPLETED:
        raise Refused(409, f"{command.kind}_completed", f"The {command.kind} is completed and can no longer change.")
    return group


def _record(world: World, group: Project | Phase, payload: AnyPayload, actor: Actor) -> Decision:
    where = f"project:{group.project_id}" if isinstance(group, Project) else f"phase:{group.phase_id}"
    return Decision([Draft(payload, where, f"project:{group.project_id}", actor.sender(world))])


def phase_of(world: World, phase_id: str) -> Phase:
    """The phase of a new run."""
    phase = world.phases.get(phase_id)
    if phase is None:
        raise Refused(422, "unknown_phase", f"There is no phase {phase_id[:64]!r}; create it first.", "/phaseId")
    if phase.status == COMPLETED:
        raise Refused(409, "phase_completed", "The phase is completed and takes no more runs.")
    return phase
