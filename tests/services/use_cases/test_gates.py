"""Gates by their use cases: listed, shown, approved and rejected, by their id or by the task of the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.commands.due import plan_task_id
from redkey.services.caller import Caller
from redkey.services.use_cases.agents import register_card
from redkey.services.use_cases.claims import claim_task
from redkey.services.use_cases.gates import (
    approve_gate,
    approve_plan_task,
    get_gate,
    list_gates,
    reject_gate,
    reject_plan_task,
)
from redkey.services.use_cases.holds import complete_claim
from redkey.services.use_cases.queues import create_queue
from redkey.services.use_cases.roles import grant_role
from redkey.services.use_cases.tasks import get_task
from redkey.services.use_cases.workflows import start_workflow
from redkey.shapes.agents import AgentRegistration
from redkey.shapes.claims import ClaimRequest, Completion
from redkey.shapes.gates import Approval, GateQuery, Rejection
from redkey.shapes.queues import NewQueue
from redkey.shapes.tasks import TaskQuery
from redkey.shapes.workflows import NewWorkflow, StartedWorkflow
from tests.harness.callers import Callers, with_callers
from tests.harness.runs import plan_of, step


async def finished(callers: Callers) -> tuple[StartedWorkflow, Caller, str]:
    """A run whose first task is done and waits at its gate: the run, the agent as a caller, and the gate's id."""
    await callers.call(create_queue, NewQueue(name="Work"))
    plan = plan_of(step("a", approvalGate=True), step("b", "a"), attempts=2)
    run: StartedWorkflow = await callers.call(start_workflow, NewWorkflow(queue_id="work", plan=plan))
    agent = await callers.call(register_card, AgentRegistration(card={"name": "Atlas"}, issue_key=True))
    await callers.call(grant_role, "writer", agent.agent_id)
    worker = callers.with_key(agent.api_key)
    return run, worker, await finish(callers, plan_task_id(run.workflow_id, "a"), worker)


async def finish(callers: Callers, task_id: str, worker: Caller) -> str:
    claimed = await callers.call(claim_task, task_id, ClaimRequest(agent_id=worker.actor.agent_id), caller=worker)
    ended = await callers.call(complete_claim, claimed.claim_id, Completion(), caller=worker)
    return str(ended.gate_id)


def test_a_gate_is_listed_until_it_is_approved(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        run, worker, gate_id = await finished(callers)
        (listed,) = (await callers.call(list_gates, GateQuery())).items
        assert listed == await callers.call(get_gate, gate_id)
        assert (listed.state, listed.title, listed.plan_task_id, listed.agent_id) == (
            "open",
            "Write a",
            "a",
            worker.actor.agent_id,
        )
        decided = await callers.call(approve_gate, gate_id, Approval(note="Good."))
        assert (decided.status, decided.workflow_id, decided.retry) == ("approved", run.workflow_id, None)
        assert (await callers.call(list_gates, GateQuery())).items == ()
        assert (await callers.call(get_gate, gate_id)).note == "Good."
        with pytest.raises(Refused) as refused:
            await callers.call(reject_gate, gate_id, Rejection(note="Too late."))
        assert refused.value.code == "gate_closed"

    with_callers(tmp_path, test)


def test_a_rejected_task_is_tried_again_with_the_note(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        run, worker, gate_id = await finished(callers)
        decided = await callers.call(reject_plan_task, run.workflow_id, "a", Rejection(note="Too short."))
        assert (decided.gate_id, decided.status, decided.retry) == (gate_id, "rejected", True)
        task = await callers.call(get_task, decided.task_id, TaskQuery())
        assert (task.state, task.attempt, task.note) == ("available", 2, "Too short.")
        await finish(callers, decided.task_id, worker)
        approved = await callers.call(approve_plan_task, run.workflow_id, "a", Approval())
        assert (approved.status, approved.gate_id != gate_id) == ("approved", True)

    with_callers(tmp_path, test)


def test_the_agent_that_did_the_work_may_not_approve_it(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        run, worker, gate_id = await finished(callers)
        with pytest.raises(Refused) as refused:
            await callers.call(approve_gate, gate_id, Approval(), caller=worker)
        assert (refused.value.status, refused.value.code) == (403, "own_gate")
        with pytest.raises(Refused) as refused:
            await callers.call(approve_plan_task, run.workflow_id, "b", Approval())
        assert (refused.value.status, refused.value.code) == (404, "gate_not_found")
        assert (await callers.call(get_gate, gate_id)).state == "open"

    with_callers(tmp_path, test)
