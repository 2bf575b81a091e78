"""What records mean for projects and phases: created, changed, completed. A workflow may belong to a phase.

All projects and phases stay in the world, as queues and roles do, because there are few of them. A person completes
them; from then on nothing can be added, but running work goes on.
"""

from __future__ import annotations

from redkey.reducers.entities import Phase, Project
from redkey.reducers.event import Event
from redkey.reducers.world import World
from redkey.wire.events import (
    PhaseCompleted,
    PhaseCreated,
    PhaseUpdated,
    ProjectCompleted,
    ProjectCreated,
    ProjectUpdated,
)

Void = str | None
COMPLETED = "completed"


def project_created(world: World, e: Event, p: ProjectCreated) -> Void:
    """Add a project."""
    if e.subject in world.projects:
        return "project_exists"
    world.projects[e.subject] = Project(e.subject, e.timestamp, e.sequence, p.content_ref.sha256)
    e.changes.touch("project", e.subject)
    return None


def phase_created(world: World, e: Event, p: PhaseCreated) -> Void:
    """Add a phase to a project that is not completed."""
    project = world.projects.get(p.project_id)
    if project is None:
        return "unknown_project"
    if project.status == COMPLETED:
        return "project_completed"
    if e.subject in world.phases:
        return "phase_exists"
    world.phases[e.subject] = Phase(e.subject, e.timestamp, e.sequence, p.content_ref.sha256, project_id=p.project_id)
    e.changes.touch("phase", e.subject)
    return None


def changed(world: World, e: Event, p: ProjectUpdated | ProjectCompleted | PhaseUpdated | PhaseCompleted) -> Void:
    """Change the name or status of a project or phase, or complete it."""
    is_project = isinstance(p, ProjectUpdated | ProjectCompleted)
    group = world.projects.get(e.subject) if is_project else world.phases.get(e.subject)
    if group is None:
        return "unknown_project" if is_project else "unknown_phase"
    group.stream_seq = max(group.stream_seq, e.stream.stream_seq)
    e.changes.touch("project" if is_project else "phase", e.subject)
    if group.status == COMPLETED:
        return "already_completed"
    if isinstance(p, ProjectCompleted | PhaseCompleted):
        group.status, group.completed_at = COMPLETED, e.timestamp
        return None
    if p.status is not None:
        group.status = p.status
    if p.content_ref is not None:
        group.content_sha256 = p.content_ref.sha256
    return None
