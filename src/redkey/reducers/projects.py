"""What records mean for projects and their phases: created, changed, completed. A workflow may belong to a phase.

Both stay in the world, as queues and roles do: there are few of them. Completing one is a decision of people, so it
ends nothing but what may be added.
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
    if e.subject in world.projects:
        return "project_exists"
    world.projects[e.subject] = Project(e.subject, e.timestamp, e.sequence, p.content_ref.sha256)
    e.changes.touch("project", e.subject)
    return None


def phase_created(world: World, e: Event, p: PhaseCreated) -> Void:
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
    """A project or phase has another name or status, or is completed."""
    is_project = isinstance(p, ProjectUpdated | ProjectCompleted)
    found = world.projects.get(e.subject) if is_project else world.phases.get(e.subject)
    if found is None:
        return "unknown_project" if is_project else "unknown_phase"
    found.stream_seq = max(found.stream_seq, e.stream.stream_seq)
    e.changes.touch("project" if is_project else "phase", e.subject)
    if found.status == COMPLETED:
        return "already_completed"
    if isinstance(p, ProjectCompleted | PhaseCompleted):
        found.status, found.completed_at = COMPLETED, e.timestamp
        return None
    if p.status is not None:
        found.status = p.status
    if p.content_ref is not None:
        found.content_sha256 = p.content_ref.sha256
    return None
