"""Blocks: who is notified, and what ends them."""

from __future__ import annotations

import pytest

from redkey.commands.claims import BlockClaim, FailClaim
from redkey.commands.decision import Refused
from redkey.commands.policies import SetPolicy
from redkey.commands.registry import DeactivateAgent
from redkey.commands.tasks import RetryTask, UnblockTask
from tests.harness.desk import Desk, ref_of

ROUTES = {
    "spec_gap": ["ba"],
    "tool_failure": ["infra"],
    "resource": ["infra"],
    "ambiguity": ["pm"],
    "verification_fail": ["pm"],
    "auth": [],
}


def block(desk: Desk, task: str, agent: str, blocker_type: str, *depends_on: str) -> list[str]:
    """Block a task; return the slugs of the agents that were notified."""
    before = set(desk.world.messages)
    desk.do(BlockClaim(desk.hold(task, agent), blocker_type, ref_of("why"), depends_on))
    slugs = {f"agent:{agent.agent_id}": agent.slug for agent in desk.world.agents.values()}
    mail = [desk.world.messages[key] for key in desk.world.messages if key not in before]
    assert all((one.priority, one.ref_task_id, one.action_required) == (1, task, True) for one in mail)
    return sorted(slugs.get(one.to, one.to) for one in mail)


@pytest.mark.parametrize("blocker_type", ROUTES)
def test_a_block_notifies_those_who_can_lift_it_the_supervisor_and_the_humans(desk: Desk, blocker_type: str) -> None:
    for slug in ("ba", "infra", "pm"):
        desk.agent(slug, f"role_{slug}")
    desk.agent("boss", "role_supervisor")
    told = block(desk, desk.task(), desk.agent("ada"), blocker_type)
    assert told == sorted([*ROUTES[blocker_type], "boss", "human"])


def test_mail_to_a_role_without_an_active_holder_goes_to_the_humans(desk: Desk) -> None:
    idle = desk.agent("pm", "role_pm")
    desk.do(DeactivateAgent(idle))
    assert block(desk, desk.task(), desk.agent("ada"), "ambiguity") == ["human"]


def test_every_active_holder_is_notified_once(desk: Desk) -> None:
    for slug in ("one", "two"):
        desk.agent(slug, "role_pm", "role_supervisor")
    assert block(desk, desk.task(), desk.agent("ada"), "ambiguity") == ["human", "one", "two"]


def test_the_routes_are_a_policy_of_the_workspace(desk: Desk) -> None:
    desk.agent("bank", "role_bank")
    desk.agent("pm", "role_pm")
    agent = desk.agent("ada")
    set_ = desk.do(SetPolicy({"auth": ("role_bank",), "ambiguity": ()}))
    assert [one.wire["type"] for one in set_.records] == ["workspace.policy_set"] * 2
    assert block(desk, desk.task(), agent, "auth") == ["bank", "human"]
    assert block(desk, desk.task(), agent, "ambiguity") == ["human"]
    desk.reload()
    assert block(desk, desk.task(), agent, "auth") == ["bank", "human"]
    assert block(desk, desk.task(), agent, "verification_fail") == ["human", "pm"]


def test_a_policy_that_is_so_already_is_not_recorded(desk: Desk) -> None:
    desk.agent("pm", "role_pm")
    before = desk.world.sequence
    with pytest.raises(Refused, match="create it first"):
        desk.do(SetPolicy({"ambiguity": ("role_nobody",)}))
    assert desk.do(SetPolicy({"ambiguity": ("role_pm",)})).answer == {"unchanged": True}
    assert desk.world.sequence == before


def test_a_block_ends_the_claim(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    block(desk, task, agent, "auth")
    found = desk.world.tasks[task]
    assert (found.state, found.claim_id, desk.world.agents[agent].live_claims) == ("blocked", "", 0)


def test_a_dependency_block_is_lifted_when_what_it_waits_for_completes(desk: Desk) -> None:
    agent, first, second, task = desk.agent("ada"), desk.task(), desk.task(), desk.task()
    assert block(desk, task, agent, "dependency", first, second) == ["human"]
    desk.complete(desk.hold(first, agent))
    assert desk.state(task) == "blocked"
    desk.reload()
    done = desk.complete(desk.hold(second, agent))
    assert desk.state(task) == "available"
    assert done.records[-1].wire["type"] == "task.unblocked"


def test_a_dependency_block_outlives_a_failure_and_is_lifted_by_the_retry(desk: Desk) -> None:
    agent, first, task = desk.agent("ada"), desk.task(), desk.task()
    block(desk, task, agent, "dependency", first)
    desk.do(FailClaim(desk.hold(first, agent), "error"))
    desk.tick(3600)
    desk.task()
    assert first not in desk.world.tasks
    assert desk.state(task) == "blocked"
    desk.do(RetryTask(first))
    desk.complete(desk.hold(first, agent))
    assert desk.state(task) == "available"


def test_a_dependency_block_on_what_is_done_is_lifted_at_once(desk: Desk) -> None:
    agent, first, task = desk.agent("ada"), desk.task(), desk.task()
    desk.complete(desk.hold(first, agent))
    block(desk, task, agent, "dependency", first)
    assert desk.state(task) == "available"


def test_other_blocks_do_not_lift_by_themselves(desk: Desk) -> None:
    agent, first, task = desk.agent("ada"), desk.task(), desk.task()
    block(desk, task, agent, "ambiguity", first)
    desk.complete(desk.hold(first, agent))
    assert desk.state(task) == "blocked"
    desk.do(UnblockTask(task))
    assert desk.state(task) == "available"


def test_a_task_waits_for_other_live_tasks_only(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    claim_id = desk.hold(task, agent)
    for named in (task, "task_" + "0" * 26):
        with pytest.raises(Refused) as refused:
            desk.do(BlockClaim(claim_id, "dependency", ref_of("why"), (named,)))
        assert refused.value.code == "unknown_dependency"


def test_a_second_block_of_a_task_notifies_again(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    assert block(desk, task, agent, "auth") == ["human"]
    desk.do(UnblockTask(task))
    assert block(desk, task, agent, "auth") == ["human"]
