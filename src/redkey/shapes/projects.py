"""Projects: they group phases, and a workflow run belongs to a phase."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from redkey.shapes.events import Event, EventQuery
from redkey.shapes.fields import Extended, Name, Page, PageQuery, Stateful, Text, one_of
from redkey.shapes.operation import PRODUCE, READ, Operation

ProjectId = Annotated[
    str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$", description="Its id [derived from its name].")
]
ProjectState = Annotated[Literal["active", "on_hold"], Meta(description="Whether it is active or on hold.")]
State = Annotated[str, one_of("active", "on_hold", "completed")]


class NewProject(Extended, frozen=True, kw_only=True):
    """A project or a phase; without an id, the id is derived from its name."""

    id: ProjectId | None = None
    name: Name
    description: Annotated[Text, Meta(description="What it is about.")] = ""


class ProjectQuery(PageQuery, frozen=True, kw_only=True):
    """Which projects: those in one state, or all."""

    state: (
        Annotated[Literal["active", "on_hold", "completed"], Meta(description="Those in one state [all].")] | None
    ) = None


class ProjectPatch(Extended, frozen=True, kw_only=True):
    """What to change; fields that are not named stay. `status` is an earlier name of `state`."""

    name: Annotated[Name, Meta(description="Its name; the id stays.")] | None = None
    description: Annotated[Text, Meta(description="What it is about.")] | None = None
    state: ProjectState | None = None
    status: Annotated[ProjectState, Meta(description="An earlier name of `state`.")] | None = None


class Phase(Stateful, frozen=True, kw_only=True):
    """A phase of a project, and its runs that have not ended."""

    id: str
    phase_id: str
    project_id: str
    name: str = ""
    description: str = ""
    status: State
    state: State = ""
    live_workflows: tuple[str, ...]
    created_at: str
    completed_at: str | None = None
    erased: bool = False


class Project(Stateful, frozen=True, kw_only=True):
    """A project and its phases."""

    id: str
    project_id: str
    name: str = ""
    description: str = ""
    status: State
    state: State = ""
    phases: tuple[Phase, ...]
    created_at: str
    completed_at: str | None = None
    erased: bool = False


class ProjectChanged(Stateful, frozen=True, kw_only=True):
    """The current state of a project or phase."""

    id: str
    project_id: str
    phase_id: str = ""
    status: State
    state: State = ""
    event_id: str


_COMPLETED = {409: "It is completed."}
_EXAMPLE = {"id": "knowledgevault", "name": "Knowledge Vault"}

CREATE_PROJECT = Operation(
    "create_project",
    "POST",
    "/projects",
    PRODUCE,
    body=NewProject,
    reply=ProjectChanged,
    status=201,
    summary="Create a project.",
    replies={409: "The project already exists."},
    example=_EXAMPLE,
    method_name="projects.create",
    positional=("name",),
    command="project create NAME",
)
LIST_PROJECTS = Operation(
    "list_projects",
    "GET",
    "/projects",
    READ,
    query=ProjectQuery,
    reply=Page[Project],
    summary="List projects.",
    description="List the projects of the workspace with their phases, oldest first.",
    method_name="projects.list",
    command="project list",
)
GET_PROJECT = Operation(
    "get_project",
    "GET",
    "/projects/{project_id}",
    READ,
    reply=Project,
    summary="Show a project with its phases.",
    method_name="projects.get",
    command="project show PROJECT",
)
PATCH_PROJECT = Operation(
    "patch_project",
    "PATCH",
    "/projects/{project_id}",
    PRODUCE,
    body=ProjectPatch,
    reply=ProjectChanged,
    repeats="bytes",
    summary="Change a project: its name, its description, its state.",
    replies=_COMPLETED,
    example={"state": "on_hold"},
    method_name="projects.update",
    command="project update PROJECT",
)
COMPLETE_PROJECT = Operation(
    "complete_project",
    "POST",
    "/projects/{project_id}/complete",
    PRODUCE,
    body=Extended,
    reply=ProjectChanged,
    summary="Complete a project.",
    description="Complete a project whose phases are all completed; it accepts no more phases.",
    replies={409: "It is completed, or a phase of it is not (phases_open)."},
    method_name="projects.complete",
    command="project complete PROJECT",
)
PROJECT_EVENTS = Operation(
    "project_events",
    "GET",
    "/projects/{project_id}/events",
    READ,
    query=EventQuery,
    reply=Page[Event],
    summary="List what happened to a project, to its phases and to the tasks of its context.",
    method_name="projects.events",
)
CREATE_PHASE = Operation(
    "create_phase",
    "POST",
    "/projects/{project_id}/phases",
    PRODUCE,
    body=NewProject,
    reply=ProjectChanged,
    status=201,
    summary="Create a phase of a project.",
    replies={409: "The phase already exists, or the project is completed."},
    example={"id": "design", "name": "Design"},
    method_name="phases.create",
    positional=("name",),
    command="phase create PROJECT NAME",
)
GET_PHASE = Operation(
    "get_phase",
    "GET",
    "/phases/{phase_id}",
    READ,
    reply=Phase,
    summary="Show a phase with its live runs.",
    method_name="phases.get",
    command="phase show PHASE",
)
PATCH_PHASE = Operation(
    "patch_phase",
    "PATCH",
    "/phases/{phase_id}",
    PRODUCE,
    body=ProjectPatch,
    reply=ProjectChanged,
    repeats="bytes",
    summary="Change a phase: its name, its description, its state.",
    replies=_COMPLETED,
    example={"state": "on_hold"},
    method_name="phases.update",
    command="phase update PHASE",
)
COMPLETE_PHASE = Operation(
    "complete_phase",
    "POST",
    "/phases/{phase_id}/complete",
    PRODUCE,
    body=Extended,
    reply=ProjectChanged,
    summary="Complete a phase.",
    description="Complete a phase whose runs have all ended; it accepts no more runs.",
    replies={409: "It is completed, or one of its runs has not ended (runs_open)."},
    method_name="phases.complete",
    command="phase complete PHASE",
)
PHASE_EVENTS = Operation(
    "phase_events",
    "GET",
    "/phases/{phase_id}/events",
    READ,
    query=EventQuery,
    reply=Page[Event],
    summary="List what happened to a phase, including the start of its runs.",
    method_name="phases.events",
)
