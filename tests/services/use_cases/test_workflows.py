"""Runs by their use cases: started from plans and definitions, seen at any place, steered, approved."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from redkey.commands.decision import Refused
from redkey.commands.registry import RegisterAgent
from redkey.services.use_case import InsufficientScope, UseCase
from redkey.services.use_cases.claims import claim_task
from redkey.services.use_cases.definitions import create_definition, publish_definition
from redkey.services.use_cases.gates import (
    approve_gate,
    approve_plan_task,
    get_gate,
    list_gates,
    reject_plan_task,
)
from redkey.services.use_cases.holds import complete_claim
from redkey.services.use_cases.queues import create_queue
from redkey.services.use_cases.roles import grant_role
from redkey.services.use_cases.workflows import (
    cancel_workflow,
    get_workflow,
    get_workflow_graph,
    get_workflow_state,
    list_workflows,
    pause_workflow,
    resume_workflow,
    start_workflow,
)
from redkey.shapes.claims import Claimed, ClaimRequest, Completion
from redkey.shapes.definitions import NewDefinition
from redkey.shapes.gates import Approval, GateQuery, Rejection
from redkey.shapes.queues import NewQueue
from redkey.shapes.workflows import (
    AtQuery,
    GraphQuery,
    NewWorkflow,
    StartedWorkflow,
    WorkflowQuery,
    WorkflowState,
)
from tests.harness.callers import Callers, with_callers
from tests.harness.desk import ref_of
from tests.harness.runs import plan_of, step

PLAN = plan_of(step("a"), step("b", "a"), step("c"))
GATED = plan_of(step("draft", approvalGate=True), step("text", "draft"), attempts=2)


async def started(callers: Callers, plan: dict[str, Any] = PLAN) -> StartedWorkflow:
    await callers.call(create_queue, NewQueue(name="work"))
    made: StartedWorkflow = await callers.call(start_workflow, NewWorkflow(queue_id="work", plan=plan))
    return made


async def state_of(callers: Callers, workflow_id: str, at: int | None = None) -> WorkflowState:
    found: WorkflowState = await callers.call(get_workflow_state, workflow_id, AtQuery(at=at))
    return found


async def refused(answer: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(Refused) as error:
        await answer
    return error.value.status, error.value.code


def test_a_started_run_tells_which_tasks_are_open(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        run = await started(callers)
        assert (run.status, run.available_tasks, run.validation.valid) == ("running", ("a", "c"), True)
        shown = await callers.call(get_workflow, run.workflow_id)
        assert (shown.status, shown.queue_id, shown.counts.total, shown.counts.open) == ("running", "queue_work", 3, 3)

    with_callers(tmp_path, test)


def test_a_repeated_start_is_one_run(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="work"))
        new = NewWorkflow(queue_id="work", plan=PLAN)
        first, again = [
            await callers.call(start_workflow, new, caller=callers.caller("produce", idempotency_key="one"))
            for _ in range(2)
        ]
        assert first == again
        assert len((await callers.call(list_workflows, WorkflowQuery())).items) == 1

    with_callers(tmp_path, test)


@pytest.mark.parametrize(
    ("new", "code"),
    [
        ({}, "plan_or_definition"),
        ({"plan": PLAN, "definition_id": "def_x"}, "plan_or_definition"),
        ({"plan": PLAN, "version": 1}, "plan_or_definition"),
        ({"definition_id": "def_x"}, "definition_not_found"),
        ({"plan": plan_of(step("a", "a"))}, "plan_invalid"),
    ],
)
def test_what_cannot_run_is_refused_and_records_nothing(tmp_path: Path, new: dict[str, Any], code: str) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="work"))
        before = callers.head
        with pytest.raises(Refused) as error:
            await callers.call(start_workflow, NewWorkflow(queue_id="work", **new))
        assert (error.value.code, callers.head) == (code, before)
        if code == "plan_invalid":
            validation: Any = error.value.members["validation"]
            assert [one["code"] for one in validation["errors"]] == ["dependency_cycle"]
            assert error.value.findings()[0].pointer.startswith("/plan/tasks/0")

    with_callers(tmp_path, test)


def test_a_run_of_a_published_version_names_it(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="work"))
        key = (await callers.call(create_definition, NewDefinition(plan=PLAN))).definition_id
        new = NewWorkflow(queue_id="work", definition_id=key)
        assert await refused(callers.call(start_workflow, new)) == (409, "not_published")
        await callers.call(publish_definition, key)
        run = await callers.call(start_workflow, new)
        assert (run.definition_id, run.version) == (key, 1)
        other = NewWorkflow(queue_id="work", definition_id=key, version=2)
        assert await refused(callers.call(start_workflow, other)) == (404, "version_not_found")

    with_callers(tmp_path, test)


def test_runs_are_steered_and_an_act_that_changes_nothing_names_no_event(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        key = (await started(callers)).workflow_id
        acts = (pause_workflow, pause_workflow, resume_workflow, cancel_workflow)
        found = [await callers.call(act, key) for act in acts]
        assert [one.status for one in found] == ["paused", "paused", "running", "cancelled"]
        assert [bool(one.event_id) for one in found] == [True, False, True, True]
        assert await refused(callers.call(pause_workflow, key)) == (409, "already_terminal")
        listed = {
            state: len((await callers.call(list_workflows, WorkflowQuery(state=state))).items)
            for state in ("live", "ended", None)
        }
        assert listed == {"live": 0, "ended": 1, None: 1}

    with_callers(tmp_path, test)


def test_a_run_is_seen_now_and_at_any_place_of_the_ledger(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        key = (await started(callers)).workflow_id
        begun = callers.head
        before = await state_of(callers, key)
        await callers.call(cancel_workflow, key)
        now, then = await state_of(callers, key), await state_of(callers, key, begun)
        assert (now.status, then) == ("cancelled", before)
        graph = await callers.call(get_workflow_graph, key, GraphQuery(at=begun))
        assert [(node.id, node.state, node.level) for node in graph.nodes] == [
            ("a", "available", 0),
            ("b", "waiting", 1),
            ("c", "available", 0),
        ]
        assert [(edge.source, edge.to) for edge in graph.edges] == [("a", "b")]
        assert await refused(state_of(callers, key, callers.head + 1)) == (422, "sequence_ahead")
        assert await refused(state_of(callers, key, 1)) == (404, "workflow_not_found")
        assert await refused(state_of(callers, "wf_none")) == (404, "workflow_not_found")

    with_callers(tmp_path, test)


async def writer(callers: Callers) -> str:
    """An agent that may do the tasks of the plans."""
    services, agent_id = callers.app.services, "agt_" + callers.app.services.ids.ulid()
    command = RegisterAgent(agent_id, "atlas", ref_of("a card"))
    await services.coordinator.submit(callers.topic, callers.admin.actor, command)
    await callers.call(grant_role, "writer", agent_id)
    return agent_id


async def hand_in(callers: Callers, run: str, agent_id: str) -> str:
    """Do the gated task; the gate that it opens."""
    agent = callers.caller("runner", agent_id=agent_id)
    (task_id,) = [one.task_id for one in (await state_of(callers, run)).tasks if one.plan_task_id == "draft"]
    claim = await callers.call(claim_task, task_id, ClaimRequest(agent_id=agent_id), caller=agent)
    assert isinstance(claim, Claimed)
    done = await callers.call(complete_claim, claim.claim_id, Completion(), caller=agent)
    assert done.gate_id
    return str(done.gate_id)


def test_gates_are_named_by_their_id_or_by_their_task_in_the_plan(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        run = (await started(callers, GATED)).workflow_id
        agent_id = await writer(callers)
        early = callers.call(approve_plan_task, run, "draft", Approval())
        assert await refused(early) == (409, "no_gate")
        assert await refused(callers.call(approve_plan_task, run, "text", Approval())) == (404, "gate_not_found")
        first = await hand_in(callers, run, agent_id)
        sent_back = await callers.call(reject_plan_task, run, "draft", Rejection(note="Too short."))
        assert (sent_back.gate_id, sent_back.status, sent_back.retry) == (first, "rejected", True)
        second = await hand_in(callers, run, agent_id)
        (waiting,) = (await callers.call(list_gates, GateQuery())).items
        assert (waiting.gate_id, waiting.attempt, waiting.title) == (second, 2, "Write draft")
        approved = await callers.call(approve_gate, second, Approval())
        assert (approved.task_id, approved.workflow_id, approved.retry) == (waiting.task_id, run, None)
        again = callers.call(approve_plan_task, run, "draft", Approval())
        assert await refused(again) == (409, "gate_closed")
        closed = await callers.call(get_gate, first)
        assert (closed.state, closed.note, closed.plan_task_id) == ("rejected", "Too short.", "draft")
        assert (await state_of(callers, run)).available_tasks == ("text",)

    with_callers(tmp_path, test)


@pytest.mark.parametrize(
    ("use", "arguments"),
    [
        (start_workflow, (NewWorkflow(queue_id="work", plan=PLAN),)),
        (pause_workflow, ("wf_x",)),
        (resume_workflow, ("wf_x",)),
        (cancel_workflow, ("wf_x",)),
        (approve_gate, ("gate_x", Approval())),
        (reject_plan_task, ("wf_x", "a", Rejection(note="No."))),
    ],
)
def test_readers_change_nothing(tmp_path: Path, use: UseCase[Any, Any], arguments: tuple[Any, ...]) -> None:
    async def test(callers: Callers) -> None:
        with pytest.raises(InsufficientScope):
            await callers.call(use, *arguments, caller=callers.caller("read"))

    with_callers(tmp_path, test)
