"""Projects and phases as the API shows them."""

from __future__ import annotations

from redkey.ledger.record import iso_time
from redkey.readmodel.view import Document, moment
from redkey.reducers import entities
from redkey.shapes.projects import Phase, Project


def project_view(project: entities.Project, document: Document | None, phases: tuple[Phase, ...]) -> Project:
    """Show a project with its phases."""
    stated = document or {}
    return Project(
        id=project.project_id,
        project_id=project.project_id,
        name=stated.get("name", ""),
        description=stated.get("description", ""),
        status=project.status,
        phases=phases,
        created_at=iso_time(project.created_at),
        completed_at=moment(project.completed_at),
        erased=document is None,
    )


def phase_view(phase: entities.Phase, document: Document | None, live_workflows: tuple[str, ...]) -> Phase:
    """Show a phase with its live runs."""
    stated = document or {}
    return Phase(
        id=phase.phase_id,
        phase_id=phase.phase_id,
        project_id=phase.project_id,
        name=stated.get("name", ""),
        description=stated.get("description", ""),
        status=phase.status,
        live_workflows=live_workflows,
        created_at=iso_time(phase.created_at),
        completed_at=moment(phase.completed_at),
        erased=document is None,
    )
