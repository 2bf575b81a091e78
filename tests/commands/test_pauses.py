"""An agent can announce a pause in claiming: it is recorded, shown and explained."""

from __future__ import annotations

from typing import Any

from redkey.commands.claims import ClaimNext
from redkey.commands.registry import HeartbeatAgent
from redkey.readmodel.agent_view import agent_view
from redkey.readmodel.explain import explain
from tests.harness.desk import QUEUE, Desk


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


def _says(desk: Desk, agent_id: str, pause: str | None = None, seconds: int = 0, **more: Any) -> None:
    desk.do(HeartbeatAgent(agent_id, pause=pause, pause_seconds=seconds, account="acme"), **more)


def _paused(desk: Desk, *agents: str) -> list[bool]:
    """Return the paused agents, which must be the same after a reload."""
    now = desk.clock.wall()
    found = [desk.world.agents[one].paused_until > now for one in agents]
    desk.reload()
    assert [desk.world.agents[one].paused_until > now for one in agents] == found
    return found


def test_a_usage_limit_pauses_all_agents_of_the_account_and_the_server_gives_them_nothing(desk: Desk) -> None:
    ada, bob, eve = desk.agent("ada"), desk.agent("bob"), desk.agent("eve")
    for agent in (ada, bob):
        _says(desk, agent)
    desk.do(HeartbeatAgent(eve, account="other"))
    _says(desk, ada, "usage_limit", 60)
    assert _paused(desk, ada, bob, eve) == [True, True, False]
    task = desk.task()
    asked = desk.do(ClaimNext(QUEUE, bob)).answer
    assert asked == {"status": "rejected", "reason": "policy", "detail": "usage_limit"}
    refused = desk.claim(task, bob).wire
    assert (refused["type"], refused["payload"]["detail"]) == ("task.claim_rejected", "usage_limit")
    # One that joins the account later, or ends a pause of its own, is paused with the others.
    late = desk.agent("late")
    _says(desk, late, "none")
    _says(desk, bob, "none")
    assert _paused(desk, ada, bob, late) == [True, True, True]
    # A shorter limit does not shorten it.
    _says(desk, bob, "usage_limit", 5)
    desk.clock.advance(30)
    assert _paused(desk, ada, bob, late) == [True, True, True]
    (reason,) = explain(desk.world, desk.world.tasks[task]).reasons
    assert reason.code == "not_claimed", "eve has another account"
    desk.clock.advance(31)
    assert _paused(desk, ada, bob, late) == [False, False, False]
    assert desk.claim(task, bob).wire["type"] == "task.claimed"


def test_an_agent_that_pauses_itself_pauses_no_other_agent(desk: Desk) -> None:
    ada, bob = desk.agent("ada"), desk.agent("bob")
    for agent in (ada, bob):
        _says(desk, agent)
    _says(desk, ada, "usage_limit", 60, caller=desk.key_of(ada))
    assert _paused(desk, ada, bob) == [True, False]


def test_other_pauses_and_agents_without_an_account_share_nothing(desk: Desk) -> None:
    ada, bob, eve = desk.agent("ada"), desk.agent("bob"), desk.agent("eve")
    for agent in (ada, bob):
        _says(desk, agent)
    _says(desk, ada, "start_failed", 60)
    desk.do(HeartbeatAgent(eve, pause="usage_limit", pause_seconds=60))
    assert _paused(desk, ada, bob, eve) == [True, False, True]
    # Only a limit of an account is the server's to hold.
    assert desk.claim(desk.task(), ada).wire["type"] == "task.claimed"
    assert desk.claim(desk.task(), eve).wire["type"] == "task.claimed"
