"""`redkey project`: projects and their phases."""

from __future__ import annotations

from redkey.cli.declared import declared_group
from redkey.cli.look import Look
from redkey.shapes.projects import Project


def _phases(project: Project) -> list[str]:
    return [f"{phase.name or phase.phase_id} ({phase.state})" for phase in project.phases]


command = declared_group(
    "project",
    "Create projects, see their phases, and complete them.",
    {
        "list": Look(
            parts={"PROJECT": "id", "STATE": "state", "PHASES": _phases, "CREATED": "created_at", "NAME": "name"},
            empty="no projects yet: redkey project create NAME",
        ),
        "show": Look(
            parts={
                "project": "id",
                **{one: one for one in ("name", "description", "state")},
                "phases": _phases,
                "created": "created_at",
                "completed": "completed_at",
            }
        ),
    },
)
