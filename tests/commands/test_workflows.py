"""Starting runs and publishing definitions, one rule at a time."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.commands.decision import Refused
from redkey.commands.registry import GrantCredits
from redkey.commands.tasks import RetryTask
from redkey.commands.workflows import PauseWorkflow, PublishDefinition, ResumeWorkflow
from redkey.readmodel.explain import explain
from redkey.services.acts import directly
from redkey.services.definitions import create_draft, encoded, read_draft
from redkey.services.planning import prepare, start_command
from tests.harness.desk import Desk
from tests.harness.runs import RunDesk, plan_of, step

PLAN = plan_of(step("a"), step("b", "a"))


def publish(desk: Desk, version: int, definition_id: str, revision: int = 1) -> Any:
    prepared = prepare(PLAN, desk.ids.nonce)
    command = PublishDefinition(definition_id, version, prepared.structure_ref, prepared.content_ref, revision)
    return desk.do(command, contents=prepared.contents)


def draft(desk: Desk) -> str:
    definition_id = "def_" + desk.ids.ulid()
    plan = encoded(PLAN)
    directly(desk.store)(desk.topic, lambda unit: create_draft(unit, desk.topic, definition_id, plan, ""))
    return definition_id


def test_a_run_needs_a_queue(desk: Desk) -> None:
    prepared = prepare(PLAN, desk.ids.nonce)
    with pytest.raises(Refused) as refused:
        desk.do(start_command(prepared, "wf_" + desk.ids.ulid(), "queue_nowhere"), contents=prepared.contents)
    assert (refused.value.status, refused.value.code) == (404, "queue_not_found")


def test_an_exhausted_workspace_starts_nothing(desk: Desk) -> None:
    desk.do(GrantCredits(1))
    prepared = prepare(PLAN, desk.ids.nonce)
    with pytest.raises(Refused) as refused:
        desk.do(start_command(prepared, "wf_" + desk.ids.ulid(), "queue_work"), contents=prepared.contents)
    assert (refused.value.status, refused.value.code) == (402, "credits_exhausted")


def test_pausing_a_paused_run_and_resuming_a_running_one_change_nothing() -> None:
    desk = RunDesk()
    desk.start(PLAN)
    head = desk.world.sequence
    assert desk.do(ResumeWorkflow(desk.run)).answer == {"unchanged": True}
    desk.do(PauseWorkflow(desk.run))
    assert desk.do(PauseWorkflow(desk.run)).answer == {"unchanged": True}
    assert desk.world.sequence == head + 1


def test_the_next_version_is_published_and_no_other(desk: Desk) -> None:
    definition_id = draft(desk)
    with pytest.raises(Refused) as skipped:
        publish(desk, 2, definition_id)
    assert skipped.value.code == "version_published"
    publish(desk, 1, definition_id)
    assert desk.world.definitions[definition_id].version == 1
    assert read_draft(desk.store, desk.topic, definition_id) is None


def test_a_draft_that_was_changed_meanwhile_is_not_published(desk: Desk) -> None:
    definition_id = draft(desk)
    with pytest.raises(Refused) as refused:
        publish(desk, 1, definition_id, revision=2)
    assert (refused.value.status, refused.value.code) == (409, "draft_changed")
    assert read_draft(desk.store, desk.topic, definition_id) is not None


def test_an_attempt_that_waits_for_room_says_so() -> None:
    desk = RunDesk()
    desk.start(plan_of(step("a"), step("b"), parallel=1))
    desk.break_down("a")
    desk.do(RetryTask(desk.planned("a").task_id))
    (reason,) = explain(desk.world, desk.planned("a")).reasons
    assert reason.code == "parallel_limit"
    desk.do(PauseWorkflow(desk.run))
    (reason,) = explain(desk.world, desk.planned("a")).reasons
    assert reason.code == "workflow_paused"
