"""Agents, roles, queues, keys, inboxes and content: what their owners may do."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.commands.actor import Actor
from redkey.commands.claims import ClaimTask
from redkey.commands.decision import Refused
from redkey.commands.registry import (
    CreateKey,
    CreateQueue,
    CreateRole,
    CreateWorkspace,
    DeactivateAgent,
    EraseContent,
    GrantRole,
    HeartbeatAgent,
    ReadMessage,
    RegisterAgent,
    RevokeKey,
    RevokeRole,
    SendMessage,
    UpdateAgent,
    UpdateQueue,
)
from redkey.ledger import content
from redkey.reducers.world import LOST_AFTER_NANOSECONDS, SECOND
from tests.harness.desk import ADMIN_KEY, QUEUE, Desk, ref_of

LOST_SECONDS = LOST_AFTER_NANOSECONDS // SECOND


def code(desk: Desk, command: Any, caller: Actor | None = None) -> tuple[int, str]:
    before = desk.world.sequence
    with pytest.raises(Refused) as refused:
        desk.do(command, caller)
    assert desk.world.sequence == before, "a refusal records nothing"
    return refused.value.status, refused.value.code


def unrecorded(desk: Desk, command: Any) -> Any:
    before = desk.world.sequence
    answer = desk.do(command).answer
    assert desk.world.sequence == before
    return answer


def test_a_workspace_begins_once(desk: Desk) -> None:
    assert code(desk, CreateWorkspace(desk.workspace_id)) == (409, "workspace_exists")


# Agents.


def test_an_agent_is_registered_once_under_a_name_of_its_own(desk: Desk) -> None:
    agent = desk.agent("ada")
    # The id comes from the card: the same one again is the same agent, and records nothing.
    assert unrecorded(desk, RegisterAgent(agent, "other", ref_of("x"))) == {"agent_id": agent}
    assert code(desk, RegisterAgent("agt_" + desk.ids.ulid(), "ada", ref_of("x"))) == (409, "slug_taken")
    bob = desk.agent("bob")
    assert code(desk, UpdateAgent(bob, slug="ada")) == (409, "slug_taken")
    desk.do(UpdateAgent(agent, slug="eve"))
    desk.do(UpdateAgent(bob, slug="ada"))
    assert desk.world.slugs == {"eve": agent, "ada": bob}
    assert code(desk, UpdateAgent("agt_" + "0" * 26)) == (404, "agent_not_found")


def test_many_capabilities_come_on_several_wires(desk: Desk) -> None:
    able = tuple(f"skill-{number}" for number in range(20))
    agent = desk.agent("ada", capabilities=able)
    assert desk.world.agents[agent].capabilities == able
    assert desk.types()[-3:] == ["agent.registered", "agent.updated", "agent.updated"]
    desk.do(UpdateAgent(agent, capabilities=able[:9]))
    assert desk.world.agents[agent].capabilities == able[:9]


def test_deactivating_is_recorded_once(desk: Desk) -> None:
    agent = desk.agent("ada")
    desk.do(DeactivateAgent(agent))
    said = desk.types()
    desk.do(DeactivateAgent(agent))
    assert (desk.types(), desk.world.agents[agent].active) == (said, False)
    desk.do(UpdateAgent(agent, active=True))
    assert desk.world.agents[agent].active


def test_a_silent_agent_is_lost_once_and_its_next_act_brings_it_back(desk: Desk) -> None:
    agent, task = desk.agent("ada"), desk.task()
    assert desk.tick(LOST_SECONDS - 1) == []
    assert [one.wire["type"] for one in desk.tick(2)] == ["agent.lost"]
    assert desk.tick(LOST_SECONDS + 1) == []
    desk.do(ClaimTask(task, agent), desk.key_of(agent))
    assert not desk.world.agents[agent].lost
    desk.reload()
    assert [one.wire["type"] for one in desk.tick(LOST_SECONDS + 1)] == ["agent.lost"]


def test_an_agent_for_whom_another_key_acts_counts_as_seen(desk: Desk) -> None:
    agent = desk.agent("ada")
    desk.clock.advance(LOST_SECONDS - 10)
    desk.hold(desk.task(), agent)
    assert desk.tick(20) == []


def test_what_is_done_to_an_agent_is_not_an_act_of_it(desk: Desk) -> None:
    agent = desk.agent("ada")
    desk.do(CreateRole("role_x"))
    desk.clock.advance(LOST_SECONDS - 10)
    desk.do(GrantRole("role_x", agent))
    assert [one.wire["type"] for one in desk.tick(20)] == ["agent.lost"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_silent_agent_that_is_switched_on_again_is_lost_at_once(desk: Desk, restarted: bool) -> None:
    agent = desk.agent("quiet")
    desk.do(DeactivateAgent(agent))
    assert desk.tick(LOST_SECONDS + 1) == []
    desk.do(UpdateAgent(agent, active=True))
    if restarted:
        desk.reload()
    assert [one.wire["type"] for one in desk.tick()] == ["agent.lost"]


def test_an_inactive_agent_is_not_lost(desk: Desk) -> None:
    agent = desk.agent("ada")
    desk.do(DeactivateAgent(agent))
    assert desk.tick(2 * LOST_SECONDS) == []
    desk.do(UpdateAgent(agent, active=True))
    assert [one.wire["type"] for one in desk.tick(LOST_SECONDS + 1)] == ["agent.lost"]


def test_heartbeats_of_an_agent_are_recorded_when_something_changed_or_time_has_passed(desk: Desk) -> None:
    agent = desk.agent("ada")
    assert unrecorded(desk, HeartbeatAgent(agent)) == {"active": True}
    assert desk.do(HeartbeatAgent(agent, 4, 1)).records
    assert unrecorded(desk, HeartbeatAgent(agent, 4, 1)) == {"active": True}
    assert desk.do(HeartbeatAgent(agent, in_use=2)).records
    assert (desk.world.agents[agent].capacity, desk.world.agents[agent].in_use) == (4, 2)
    desk.clock.advance(LOST_SECONDS / 3 - 1)
    assert unrecorded(desk, HeartbeatAgent(agent)) == {"active": True}
    desk.clock.advance(2)
    assert desk.do(HeartbeatAgent(agent)).records
    desk.tick(LOST_SECONDS + 1)
    assert desk.do(HeartbeatAgent(agent)).records, "a lost agent is back"
    assert not desk.world.agents[agent].lost


def test_an_agent_key_acts_only_for_its_agent(desk: Desk) -> None:
    ada, bob = desk.agent("ada"), desk.agent("bob")
    for command in (HeartbeatAgent(bob), DeactivateAgent(bob)):
        assert code(desk, command, desk.key_of(ada)) == (404, "agent_not_found")


# Roles and queues.


def test_a_grant_is_recorded_once_and_a_revocation_ends_it(desk: Desk) -> None:
    agent = desk.agent("ada")
    desk.do(CreateRole("role_x"))
    assert code(desk, CreateRole("role_x")) == (409, "role_exists")
    assert unrecorded(desk, RevokeRole("role_x", agent)) == {"unchanged": True}
    desk.do(GrantRole("role_x", agent))
    assert unrecorded(desk, GrantRole("role_x", agent)) == {"unchanged": True}
    assert (desk.world.agents[agent].roles, desk.world.roles["role_x"].agents) == (("role_x",), (agent,))
    desk.do(RevokeRole("role_x", agent))
    assert (desk.world.agents[agent].roles, desk.world.roles["role_x"].agents) == ((), ())
    assert code(desk, GrantRole("role_none", agent)) == (404, "role_not_found")
    assert code(desk, GrantRole("role_x", "agt_" + "0" * 26)) == (404, "agent_not_found")


def test_a_queue_is_created_once_and_keeps_settings_that_are_not_changed(desk: Desk) -> None:
    assert code(desk, CreateQueue(QUEUE, {})) == (409, "queue_exists")
    assert code(desk, UpdateQueue("queue_none", {})) == (404, "queue_not_found")
    desk.do(UpdateQueue(QUEUE, {"lease_seconds": 60}))
    desk.do(UpdateQueue(QUEUE, {"paused": True, "priority": "high"}))
    settings = desk.world.queues[QUEUE].settings
    assert (settings.lease_seconds, settings.paused, settings.priority) == (60, True, "high")
    assert desk.world.tasks[desk.task()].priority == 1, "the queue's priority"


# Keys.


def test_keys_are_on_the_ledger_without_their_secrets(desk: Desk) -> None:
    agent, key_id = desk.agent("ada"), "key_" + desk.ids.ulid()
    desk.do(CreateKey(key_id, "rk_abc", ("agent",), agent, secret_sha256="5e" * 32))
    key = desk.world.keys[key_id]
    assert (key.prefix, key.scopes, key.agent_id) == ("rk_abc", ("agent",), agent)
    assert all(b"5e" * 32 not in record.wire for record in desk.store.read(desk.topic))
    assert code(desk, CreateKey(key_id, "rk_abc", ("agent",))) == (409, "key_exists")
    assert code(desk, CreateKey("key_" + desk.ids.ulid(), "rk_d", ("agent",), "agt_" + "0" * 26))[0] == 404


def test_a_revoked_key_may_do_nothing_more(desk: Desk) -> None:
    key_id = "key_" + desk.ids.ulid()
    desk.do(CreateKey(key_id, "rk_abc", ("admin",)))
    caller = Actor(desk.workspace_id, key_id, frozenset({"admin"}))
    desk.do(CreateRole("role_x"), caller)
    desk.do(RevokeKey(key_id))
    assert code(desk, CreateRole("role_y"), caller) == (401, "invalid_token")
    assert code(desk, RevokeKey(key_id)) == (404, "key_not_found")


def test_senders_are_written_from_the_key_and_never_from_a_body(desk: Desk) -> None:
    agent = desk.agent("ada")
    runner = Actor(desk.workspace_id, "key_" + desk.ids.ulid(), frozenset({"runner"}))
    senders = []
    for number, caller in enumerate((desk.admin, runner, desk.key_of(agent))):
        desk.do(CreateRole(f"role_{number}"), caller)
        senders.append(desk.records()[-1].wire["sender"])
    assert senders == [f"human:{ADMIN_KEY}", f"runner:{runner.key_id}", "agent:ada"]


# Inboxes.


def mail(desk: Desk, to: str, **more: Any) -> list[str]:
    """Send a message; return its recipients."""
    before = desk.world.sequence
    desk.do(SendMessage("msg_" + desk.ids.ulid(), to, 2, "question", ref_of("hello"), **more))
    return [one.wire["payload"]["to"] for one in desk.records(before)]


def test_mail_goes_to_an_agent_to_each_active_holder_of_a_role_or_to_the_humans(desk: Desk) -> None:
    ada, bob = desk.agent("ada", "role_x"), desk.agent("bob", "role_x")
    assert mail(desk, f"agent:{ada}") == [f"agent:{ada}"]
    assert mail(desk, "role:role_x") == [f"agent:{ada}", f"agent:{bob}"]
    desk.do(DeactivateAgent(ada))
    assert mail(desk, "role:role_x") == [f"agent:{bob}"]
    desk.do(DeactivateAgent(bob))
    assert mail(desk, "role:role_x") == ["human"]
    assert mail(desk, "human") == ["human"]
    for to in ("agent:agt_" + "0" * 26, "role:role_none"):
        assert code(desk, SendMessage("msg_" + desk.ids.ulid(), to, 1, "info", ref_of("x")))[0] == 404


def test_a_message_is_read_once_by_whom_it_is_for(desk: Desk) -> None:
    ada, bob = desk.agent("ada"), desk.agent("bob")
    mail(desk, f"agent:{ada}")
    (message_id,) = desk.world.messages
    assert code(desk, ReadMessage(message_id), desk.key_of(bob)) == (404, "message_not_found")
    desk.do(ReadMessage(message_id), desk.key_of(ada))
    assert unrecorded(desk, ReadMessage(message_id)) == {"unchanged": True}
    assert desk.world.messages == {}
    assert code(desk, ReadMessage("msg_" + "0" * 26)) == (404, "message_not_found")


def test_a_message_id_is_used_once(desk: Desk) -> None:
    message_id = "msg_" + desk.ids.ulid()
    desk.do(SendMessage(message_id, "human", 1, "info", ref_of("x")))
    again = SendMessage(message_id, "human", 1, "info", ref_of("x"))
    assert code(desk, again) == (409, "message_exists")
    desk.do(ReadMessage(message_id))
    assert code(desk, again) == (409, "message_exists")


def test_mail_to_a_single_human_is_not_known(desk: Desk) -> None:
    assert code(desk, SendMessage("msg_" + desk.ids.ulid(), "human:eve", 1, "info", ref_of("x")))[0] == 422


# Content.


def test_content_is_erased_with_a_record_of_it_and_structure_stays(desk: Desk) -> None:
    text, pinned = content.body(b"secret plans"), content.structure({"a": 1})
    desk.do(CreateRole("role_x", content.ref(text)), contents=(text, pinned))
    desk.do(EraseContent(text.sha256))
    assert desk.store.content(desk.topic, text.sha256) is None
    assert desk.types()[-1] == "content.erased"
    assert code(desk, EraseContent(text.sha256)) == (404, "content_not_found")
    assert code(desk, EraseContent(pinned.sha256)) == (409, "content_pinned")


def test_a_refused_request_leaves_no_content_behind(desk: Desk) -> None:
    text = content.body(b"never kept")
    with pytest.raises(Refused):
        desk.do(CreateRole("not a role id", content.ref(text)), contents=(text,))
    desk.task()
    assert desk.store.content(desk.topic, text.sha256) is None
