"""Projects and their phases: created, changed, completed and shown."""

from __future__ import annotations

from typing import Literal

from redkey.commands.decision import not_found, wrong
from redkey.commands.projects import ChangeProject, CreateProject
from redkey.readmodel.project_view import phase_view, project_view
from redkey.readmodel.rows import pages
from redkey.readmodel.view import read_document
from redkey.reducers import entities
from redkey.reducers.world import World
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.queries import Question
from redkey.services.use_case import use_case
from redkey.services.use_cases.events import event_page
from redkey.services.use_cases.pages import page_by_place, read_entity
from redkey.services.use_cases.texts import keep
from redkey.shapes import projects
from redkey.shapes.events import Event, EventQuery
from redkey.shapes.fields import Page, set_fields
from redkey.shapes.projects import NewProject, Phase, Project, ProjectChanged, ProjectPatch, ProjectQuery
from redkey.wire.a2a_card import slug
from redkey.wire.names import id_for

_ID_LIMIT = 32
_Kind = Literal["project", "phase"]


@use_case(projects.CREATE_PROJECT)
def create_project(caller: Caller, new: NewProject) -> Pending[ProjectChanged]:
    """Create a project."""
    return _create(caller, new, "")


@use_case(projects.CREATE_PHASE)
def create_phase(caller: Caller, project_id: str, new: NewProject) -> Pending[ProjectChanged]:
    """Create a phase of a project."""
    return _create(caller, new, project_id)


def _create(caller: Caller, new: NewProject, project_id: str) -> Pending[ProjectChanged]:
    named = new.id or id_for(new.name, slug(new.name), _ID_LIMIT)
    ref, content = keep(caller, set_fields(new, "name", "description"))
    kind: _Kind = "phase" if project_id else "project"
    return Pending(
        CreateProject(named, ref, project_id), lambda outcome, place: _changed(outcome, place, kind, named), (content,)
    )


def _changed(outcome: Outcome, place: Place, kind: _Kind, subject: str) -> ProjectChanged:
    world: World = place.world
    found = world.projects[subject] if kind == "project" else world.phases[subject]
    # The reply to a repeated request is the first one, whatever has changed since.
    status = {"created": "active", "completed": "completed"}.get(outcome.records[0].event.type.partition(".")[2])
    return ProjectChanged(
        id=subject,
        project_id=found.project_id,
        phase_id=subject if kind == "phase" else "",
        status=status or found.status,
        event_id=outcome.event_id,
    )


@use_case(projects.LIST_PROJECTS)
def list_projects(caller: Caller, asked: ProjectQuery) -> Page[Project]:
    """List the projects of the workspace with their phases, the oldest first."""
    found: Page[entities.Project] = page_by_place(caller, "project", "projects", asked, lambda project: project)
    wanted = (project for project in found.items if asked.state in (None, project.status))
    return Page(tuple(_show(caller, project) for project in wanted), found.next)


@use_case(projects.GET_PROJECT)
def get_project(caller: Caller, project_id: str) -> Project:
    """Show one project, with its phases."""
    return _show(caller, read_entity(caller, entities.Project, project_id))


def _show(caller: Caller, project: entities.Project) -> Project:
    store, topic = caller.means.store, caller.topic
    phases = pages(store, topic, "phase", project.project_id)
    shown = tuple(_show_phase(caller, phase) for phase in phases)
    return project_view(project, read_document(store, topic, project.content_sha256), shown)


@use_case(projects.GET_PHASE)
def get_phase(caller: Caller, phase_id: str) -> Phase:
    """Show one phase, with its live runs."""
    return _show_phase(caller, read_entity(caller, entities.Phase, phase_id))


def _show_phase(caller: Caller, phase: entities.Phase) -> Phase:
    runs = caller.means.coordinator.peek(caller.topic).runs
    live = tuple(sorted(key for key, run in runs.items() if run.workflow.phase_id == phase.phase_id))
    return phase_view(phase, read_document(caller.means.store, caller.topic, phase.content_sha256), live)


@use_case(projects.PATCH_PROJECT)
def patch_project(caller: Caller, project_id: str, patch: ProjectPatch) -> Pending[ProjectChanged]:
    """Change a project: its name, its description, its state."""
    before = read_entity(caller, entities.Project, project_id)
    return _patch(caller, "project", project_id, before.content_sha256, patch)


@use_case(projects.PATCH_PHASE)
def patch_phase(caller: Caller, phase_id: str, patch: ProjectPatch) -> Pending[ProjectChanged]:
    """Change a phase: its name, its description, its state."""
    before = read_entity(caller, entities.Phase, phase_id)
    return _patch(caller, "phase", phase_id, before.content_sha256, patch)


def _patch(caller: Caller, kind: _Kind, subject: str, sha256: str, patch: ProjectPatch) -> Pending[ProjectChanged]:
    stated = set_fields(patch, "name", "description")
    state = patch.state or patch.status or ""
    if patch.status not in (None, state):
        raise wrong("state_contradictory", "/status", "status is an earlier name of state; give state alone")
    if not stated and not state:
        raise wrong("nothing_to_change", "", "name at least one field to change")

    def reply(outcome: Outcome, place: Place) -> ProjectChanged:
        return _changed(outcome, place, kind, subject)

    if not stated:
        return Pending(ChangeProject(kind, subject, state), reply)
    ref, content = keep(caller, {**(read_document(caller.means.store, caller.topic, sha256) or {}), **stated})
    return Pending(ChangeProject(kind, subject, state, ref), reply, (content,))


@use_case(projects.COMPLETE_PROJECT)
def complete_project(caller: Caller, project_id: str) -> Pending[ProjectChanged]:
    """Complete a project whose phases are all completed."""
    command = ChangeProject("project", project_id, completes=True)
    return Pending(command, lambda outcome, place: _changed(outcome, place, "project", project_id))


@use_case(projects.COMPLETE_PHASE)
def complete_phase(caller: Caller, phase_id: str) -> Pending[ProjectChanged]:
    """Complete a phase whose runs have all ended."""
    command = ChangeProject("phase", phase_id, completes=True)
    return Pending(command, lambda outcome, place: _changed(outcome, place, "phase", phase_id))


@use_case(projects.PROJECT_EVENTS)
async def project_events(caller: Caller, project_id: str, asked: EventQuery) -> Page[Event]:
    """List what happened to a project, with its phases and the tasks of its context."""
    return await _events(caller, "project", project_id, asked)


@use_case(projects.PHASE_EVENTS)
async def phase_events(caller: Caller, phase_id: str, asked: EventQuery) -> Page[Event]:
    """List what happened to a phase, with the start of its runs."""
    return await _events(caller, "phase", phase_id, asked)


async def _events(caller: Caller, kind: _Kind, subject: str, asked: EventQuery) -> Page[Event]:
    if caller.means.store.row(caller.topic, kind, subject) is None:
        raise not_found(kind)
    return await event_page(caller, Question(about=f"{kind}:{subject}"), asked)
