"""Projects and phases as the API shows them."""

from __future__ import annotations

from typing import Any

from redkey.ledger.record import iso_time
from redkey.readmodel.view import Document, moment
from redkey.reducers import entities
from redkey.shapes.projects import Phase, Project


def project_view(project: entities.Project, document: Document | None, phases: tuple[Phase, ...]) -> Project:
    """Show a project with its phases."""
    return Project(id=project.project_id, phases=phases, **_shared(project, document))


def phase_view(phase: entities.Phase, document: Document | None, live_workflows: tuple[str, ...]) -> Phase:
    """Show a phase with its live runs."""
    more = _shared(phase, document)
    return Phase(id=phase.phase_id, phase_id=phase.phase_id, live_workflows=live_workflows, **more)


def _shared(entity: entities.Project | entities.Phase, document: Document | None) -> dict[str, Any]:
    stated = document or {}
    return {
        "project_id": entity.project_id,
        "name": stated.get("name", ""),
        "description": stated.get("description", ""),
        "status": entity.status,
        "created_at": iso_time(entity.created_at),
        "completed_at": moment(entity.completed_at),
        "erased": document is None,
    }
