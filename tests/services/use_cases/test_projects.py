"""Projects and phases by their use cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_case import InsufficientScope
from redkey.services.use_cases.projects import (
    complete_phase,
    complete_project,
    create_phase,
    create_project,
    get_phase,
    get_project,
    list_projects,
    patch_phase,
    patch_project,
    phase_events,
    project_events,
)
from redkey.shapes.events import EventQuery
from redkey.shapes.projects import NewProject, ProjectPatch, ProjectQuery
from tests.harness.callers import Callers, with_callers


def test_a_project_is_completed_after_its_phases(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        made = await callers.call(create_project, NewProject(name="Knowledge Vault"))
        assert (made.id, made.project_id, made.status) == ("knowledge_vault", "knowledge_vault", "active")
        phase = await callers.call(create_phase, made.id, NewProject(id="design", name="Design"))
        assert (phase.phase_id, phase.project_id) == ("design", made.id)
        with pytest.raises(Refused) as failed:
            await callers.call(complete_project, made.id)
        assert (failed.value.status, failed.value.code) == (409, "phases_open")
        assert (await callers.call(complete_phase, "design")).status == "completed"
        assert (await callers.call(complete_project, made.id)).status == "completed"
        shown = await callers.call(get_project, made.id)
        assert (shown.status, [one.status for one in shown.phases]) == ("completed", ["completed"])
        assert shown.completed_at is not None

    with_callers(tmp_path, test)


def test_what_is_not_named_stays(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        project = NewProject(id="vault", name="Vault", description="Keeps what is known.")
        await callers.call(create_project, project)
        await callers.call(create_phase, "vault", NewProject(id="design", name="Design"))
        changed = await callers.call(patch_project, "vault", ProjectPatch(name="Vaults", state="on_hold"))
        assert changed.status == "on_hold"
        await callers.call(patch_phase, "design", ProjectPatch(description="How it looks."))
        shown, phase = await callers.call(get_project, "vault"), await callers.call(get_phase, "design")
        assert (shown.name, shown.description, shown.status) == ("Vaults", "Keeps what is known.", "on_hold")
        assert (phase.name, phase.description, phase.live_workflows) == ("Design", "How it looks.", ())
        head = callers.head
        for patch, code in (
            (ProjectPatch(), "nothing_to_change"),
            (ProjectPatch(state="active", status="on_hold"), "state_contradictory"),
        ):
            with pytest.raises(Refused) as failed:
                await callers.call(patch_project, "vault", patch)
            assert failed.value.code == code
        assert callers.head == head

    with_callers(tmp_path, test)


def test_projects_are_listed_by_state_and_page(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        for name in ("one", "two", "three"):
            await callers.call(create_project, NewProject(name=name))
        await callers.call(complete_project, "two")
        first = await callers.call(list_projects, ProjectQuery(limit=2))
        rest = await callers.call(list_projects, ProjectQuery(limit=2, after=first.next))
        assert [one.id for one in (*first.items, *rest.items)] == ["one", "two", "three"]
        completed = await callers.call(list_projects, ProjectQuery(state="completed"))
        assert [one.id for one in completed.items] == ["two"]

    with_callers(tmp_path, test)


def test_events_are_those_of_the_project_and_of_the_phase(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_project, NewProject(name="one"))
        await callers.call(create_project, NewProject(name="two"))
        await callers.call(create_phase, "one", NewProject(name="design"))
        found = await callers.call(project_events, "one", EventQuery())
        assert [one.type for one in found.items] == ["project.created", "phase.created"]
        found = await callers.call(phase_events, "design", EventQuery())
        assert [one.type for one in found.items] == ["phase.created"]
        for use, kind in ((project_events, "project"), (phase_events, "phase")):
            with pytest.raises(Refused) as failed:
                await callers.call(use, "none", EventQuery())
            assert (failed.value.status, failed.value.code) == (404, f"{kind}_not_found")

    with_callers(tmp_path, test)


def test_a_key_that_only_reads_changes_nothing(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_project, NewProject(name="one"))
        reader, head = callers.caller("read"), callers.head
        for use, arguments in (
            (create_project, [NewProject(name="two")]),
            (create_phase, ["one", NewProject(name="two")]),
            (patch_project, ["one", ProjectPatch(name="two")]),
            (complete_project, ["one"]),
        ):
            with pytest.raises(InsufficientScope):
                await callers.call(use, *arguments, caller=reader)
        assert callers.head == head
        assert (await callers.call(get_project, "one", caller=reader)).name == "one"

    with_callers(tmp_path, test)
