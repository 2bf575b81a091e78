"""Projects and phases by their own streams alone, outside any workspace: status and members.

The world of a workspace folds the same wires (`projects`) and refuses the same ones for the same reasons.
"""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.reducers.projects import COMPLETED
from redkey.wire.events import (
    AnyPayload,
    PhaseCompleted,
    PhaseCreated,
    PhaseUpdated,
    ProjectCompleted,
    ProjectCreated,
    ProjectUpdated,
)


class Group(msgspec.Struct):
    """A project with its phases, or a phase with its workflows."""

    status: str = "active"
    project_id: str = ""
    members: list[str] = []


class Grouping:
    """The projects and phases after some wires."""

    def __init__(self) -> None:
        self.projects: dict[str, Group] = {}
        self.phases: dict[str, Group] = {}

    def apply(self, subject: str, p: AnyPayload) -> str | None:
        """Fold one wire on the stream of a project or phase; return None if it applied, else why it is void."""
        if type(p) is ProjectCreated:
            if subject in self.projects:
                return "project_exists"
            self.projects[subject] = Group()
            return None
        if type(p) is PhaseCreated:
            project = self.projects.get(p.project_id)
            if project is None or project.status == COMPLETED:
                return "unknown_project" if project is None else "project_completed"
            if subject in self.phases:
                return "phase_exists"
            self.phases[subject] = Group(project_id=p.project_id)
            project.members.append(subject)
            return None
        is_project = isinstance(p, ProjectUpdated | ProjectCompleted)
        group = (self.projects if is_project else self.phases).get(subject)
        if group is None:
            return "unknown_project" if is_project else "unknown_phase"
        if group.status == COMPLETED:
            return "already_completed"
        if isinstance(p, ProjectCompleted | PhaseCompleted):
            group.status = COMPLETED
        elif isinstance(p, ProjectUpdated | PhaseUpdated) and p.status is not None:
            group.status = p.status
        return None

    def start(self, workflow_id: str, phase_id: str) -> str | None:
        """Add a workflow to its phase; return None, or why the wire is void."""
        phase = self.phases.get(phase_id)
        if phase is None or phase.status == COMPLETED:
            return "unknown_phase" if phase is None else "phase_completed"
        phase.members.append(workflow_id)
        return None

    def as_json(self) -> dict[str, Any]:
        """The projects and phases, by id."""
        return {
            "project_streams": {
                key: {"status": project.status, "phases": project.members}
                for key, project in sorted(self.projects.items())
            },
            "phase_streams": {
                key: {"status": phase.status, "project_id": phase.project_id, "workflows": phase.members}
                for key, phase in sorted(self.phases.items())
            },
        }
