"""Agents by their use cases: replies made at the place of their records, and again when a request is repeated."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from redkey.commands.decision import Refused
from redkey.commands.registry import EraseContent
from redkey.readmodel.rows import entity
from redkey.services.use_case import InsufficientScope, UseCase
from redkey.services.use_cases.agents import (
    deactivate_agent,
    get_agent,
    heartbeat_agent,
    list_agents,
    list_claim_history,
    patch_agent,
    register_card,
)
from redkey.services.use_cases.claims import claim_task
from redkey.services.use_cases.queues import create_queue
from redkey.services.use_cases.roles import create_role, grant_role
from redkey.services.use_cases.tasks import create_task
from redkey.shapes.agents import Agent, AgentBeat, AgentFilter, AgentPatch, AgentRegistration, RegisteredAgent
from redkey.shapes.claims import ClaimRequest
from redkey.shapes.fields import PageQuery
from redkey.shapes.queues import NewQueue
from redkey.shapes.roles import NewRole
from redkey.shapes.tasks import NewTask
from tests.harness.callers import Callers, with_callers

CARD: dict[str, Any] = {
    "name": "Atlas",
    "url": "https://atlas.example.com/a2a",
    # More capabilities than one wire holds.
    "skills": [{"id": f"skill_{number}", "name": f"Skill {number}", "tags": []} for number in range(20)],
}


def test_a_registration_shows_everything_that_its_records_say(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        new = AgentRegistration(card={**CARD, "url": ""}, eligible_roles=("writer",))
        agent: RegisteredAgent = await callers.call(register_card, new, caller=callers.caller("runner"))
        shown: Agent = await callers.call(get_agent, agent.agent_id)
        assert (agent.slug, agent.eligible_roles, agent.roles) == ("atlas", ("role_writer",), ())
        assert [one.code for one in agent.warnings] == ["endpoint_missing"]
        assert agent.capabilities == shown.capabilities
        assert len(agent.capabilities) == 20
        assert agent.api_key == ""
        assert msgspec.structs.asdict(agent).items() >= (msgspec.structs.asdict(shown) | {"card": None}).items()

    with_callers(tmp_path, test)


def test_a_repeated_registration_is_answered_from_its_records(tmp_path: Path) -> None:
    """The same bytes and the same key, although the card at its URL is gone and the agent has changed."""

    async def test(callers: Callers) -> None:
        new = AgentRegistration(card=CARD, issue_key=True)
        first = await callers.call(register_card, new, caller=callers.caller("runner", idempotency_key="once"))
        assert callers.app.keys.authenticate(first.api_key).actor.agent_id == first.agent_id
        assert first.api_key not in repr(first)
        await callers.call(patch_agent, first.agent_id, AgentPatch(slug="boreas", active=False))
        head = callers.head
        gone = AgentRegistration(card_url="https://127.0.0.1:1/gone", issue_key=True)
        again = await callers.call(register_card, gone, caller=callers.caller("runner", idempotency_key="once"))
        assert msgspec.json.encode(again) == msgspec.json.encode(first)
        assert callers.head == head

    with_callers(tmp_path, test)


def test_a_change_is_shown_as_its_unit_left_it(tmp_path: Path) -> None:
    """Two changes in one unit: each reply shows its own place, not what the last one made of the agent."""

    async def test(callers: Callers) -> None:
        agent = await callers.call(register_card, AgentRegistration(card=CARD))
        one, two = await asyncio.gather(
            callers.call(patch_agent, agent.agent_id, AgentPatch(slug="first", framework="crew")),
            callers.call(patch_agent, agent.agent_id, AgentPatch(slug="second", active=False)),
        )
        assert (one.slug, one.active, one.framework, one.card) == ("first", True, "crew", CARD)
        assert (two.slug, two.active, two.framework) == ("second", False, "crew")

    with_callers(tmp_path, test)


def test_a_patch_without_a_card_keeps_the_card_and_needs_one_that_is_there(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent = await callers.call(register_card, AgentRegistration(card=CARD, framework="crew"))
        changed = await callers.call(patch_agent, agent.agent_id, AgentPatch(eligible_roles=("writer", "role_writer")))
        assert (changed.card, changed.framework, changed.eligible_roles) == (CARD, "crew", ("role_writer",))
        row = callers.store.row(callers.topic, "agent", agent.agent_id)
        coordinator = callers.app.coordinator
        await coordinator.submit(callers.topic, callers.admin.actor, EraseContent(entity(row).card_sha256))
        for patch, code in (
            (AgentPatch(framework="other"), "card_erased"),
            (AgentPatch(), "nothing_to_change"),
            (AgentPatch(eligible_roles=("no such role!",)), "role_invalid"),
        ):
            with pytest.raises(Refused) as refused:
                await callers.call(patch_agent, agent.agent_id, patch)
            assert refused.value.code == code
        assert (await callers.call(get_agent, agent.agent_id)).erased
        assert (await callers.call(patch_agent, agent.agent_id, AgentPatch(card=CARD))).card == CARD

    with_callers(tmp_path, test)


@pytest.mark.parametrize(
    ("use", "arguments", "scope"),
    [
        (register_card, (AgentRegistration(card=CARD),), "produce"),
        (patch_agent, ("agt_none", AgentPatch(active=True)), "runner"),
        (deactivate_agent, ("agt_none",), "produce"),
        (heartbeat_agent, ("agt_none", AgentBeat()), "read"),
    ],
)
def test_authority_is_judged_by_the_use_case(
    tmp_path: Path, use: UseCase[Any, Any], arguments: tuple[Any, ...], scope: str
) -> None:
    async def test(callers: Callers) -> None:
        head = callers.head
        with pytest.raises(InsufficientScope):
            await callers.call(use, *arguments, caller=callers.caller(scope))
        assert callers.head == head

    with_callers(tmp_path, test)


def test_agents_are_listed_by_slug_role_and_activity(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_role, NewRole(name="Writer"))
        found = {}
        for name in ("Atlas", "Boreas", "Castor"):
            found[name] = (await callers.call(register_card, AgentRegistration(card={"name": name}))).agent_id
        await callers.call(grant_role, "writer", found["Boreas"])
        ended = await callers.call(deactivate_agent, found["Castor"])
        assert (ended.agent_id, ended.status, ended.event_id != "") == (found["Castor"], "deactivated", True)

        async def slugs(**asked: Any) -> list[str]:
            page = await callers.call(list_agents, AgentFilter(**asked))
            return [agent.slug for agent in page.items]

        # The list is in the order of the ids, which come from the cards.
        ordered = [name.lower() for name in sorted(found, key=found.__getitem__)]
        assert await slugs() == ordered
        assert await slugs(slug="boreas") == ["boreas"]
        assert await slugs(slug="boreas", active=False) == []
        assert await slugs(slug="nobody") == []
        assert await slugs(role="writer") == ["boreas"]
        assert await slugs(active=False) == ["castor"]
        first = await callers.call(list_agents, AgentFilter(limit=2))
        assert [agent.slug for agent in first.items] == ordered[:2]
        assert await slugs(limit=2, after=first.next) == ordered[2:]

    with_callers(tmp_path, test)


def test_a_heartbeat_is_an_event_only_when_it_changes_something(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent = await callers.call(register_card, AgentRegistration(card=CARD))
        first, same = [
            await callers.call(heartbeat_agent, agent.agent_id, AgentBeat(capacity=4, in_use=1)) for _ in range(2)
        ]
        assert (first.status, first.event_id != "", same.event_id) == ("alive", True, "")
        shown = await callers.call(get_agent, agent.agent_id)
        assert (shown.capacity, shown.in_use) == (4, 1)

    with_callers(tmp_path, test)


def test_claim_history_has_what_was_won_missed_and_rejected(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_queue, NewQueue(name="work"))
        await callers.call(create_role, NewRole(name="Writer"))
        winner, loser = [
            (await callers.call(register_card, AgentRegistration(card={"name": name}))).agent_id
            for name in ("Atlas", "Boreas")
        ]
        easy, hard = [
            (await callers.call(create_task, "work", NewTask(title="T", required_roles=roles))).task_id
            for roles in ((), ("writer",))
        ]
        won = await callers.call(claim_task, easy, ClaimRequest(agent_id=winner))
        missed = await callers.call(claim_task, easy, ClaimRequest(agent_id=loser))
        rejected = await callers.call(claim_task, hard, ClaimRequest(agent_id=loser))
        [one] = (await callers.call(list_claim_history, winner, PageQuery())).items
        assert (one.task_id, one.claim_id, one.status) == (easy, won.claim_id, "claimed")
        assert (one.lease_expires_at, one.event_id, one.reason) == (won.lease_expires_at, won.event_id, "")
        first = await callers.call(list_claim_history, loser, PageQuery(limit=1))
        [two] = first.items
        assert (two.task_id, two.status, two.reason) == (hard, "rejected", rejected.reason)
        assert two.event_id == rejected.event_id
        [three] = (await callers.call(list_claim_history, loser, PageQuery(after=first.next))).items
        assert (three.task_id, three.status, three.reason) == (easy, "missed", missed.reason)
        assert (three.winning_claim_id, three.winning_agent_id) == (won.claim_id, winner)

    with_callers(tmp_path, test)
