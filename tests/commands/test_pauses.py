"""An agent that claims nothing for a while says so: it is recorded, shown and explained."""

from __future__ import annotations

from redkey.commands.registry import HeartbeatAgent
from redkey.readmodel.agent_view import agent_view
from redkey.readmodel.explain import explain
from tests.harness.desk import Desk


def test_a_pause_is_recorded_once_shown_and_explained_until_it_ends(desk: Desk) -> None:
    ada, task = desk.agent("ada"), desk.task()
    assert desk.do(HeartbeatAgent(ada, pause="usage_limit", pause_seconds=3600)).records
    shown = agent_view(desk.world.agents[ada], None)
    assert (shown.pause, bool(shown.paused_until)) == ("usage_limit", True)
    (reason,) = explain(desk.world, desk.world.tasks[task]).reasons
    assert (reason.code, "ada until" in reason.message, "(usage limit)" in reason.message) == (
        "agents_paused",
        True,
        True,
    )
    desk.reload()
    assert desk.world.agents[ada].pause == "usage_limit"
    # Another agent that is awake may take it.
    desk.agent("bob")
    (reason,) = explain(desk.world, desk.world.tasks[task]).reasons
    assert reason.code == "not_claimed"
    assert desk.do(HeartbeatAgent(ada, pause="none")).records
    assert agent_view(desk.world.agents[ada], None).paused_until is None
    assert not desk.do(HeartbeatAgent(ada, pause="none")).records
