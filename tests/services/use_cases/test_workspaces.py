"""Workspaces, keys and policies by their use cases."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from redkey.commands.decision import Refused
from redkey.commands.registry import RegisterAgent
from redkey.services.caller import Caller
from redkey.services.signing import Signing
from redkey.services.use_case import InsufficientScope
from redkey.services.use_cases.new_key import issue_agent_key
from redkey.services.use_cases.policies import get_policy, raise_rules, set_policy
from redkey.services.use_cases.roles import create_role
from redkey.services.use_cases.workspaces import (
    create_key,
    create_workspace,
    list_keys,
    list_workspaces,
    revoke_key,
)
from redkey.services.workspaces import topic_of, workspaces
from redkey.shapes.fields import PageQuery
from redkey.shapes.policies import NewRules, PolicyPatch
from redkey.shapes.roles import NewRole
from redkey.shapes.workspaces import CreatedWorkspace, NewKey, NewWorkspace, WorkspaceFilter
from tests.harness.callers import Callers, with_callers
from tests.harness.desk import ref_of


def caller_of(callers: Callers, key: str) -> Caller:
    """A caller as the door makes it for the holder of a key."""
    principal = callers.app.keys.authenticate(key)
    assert principal is not None
    found = Caller(callers.app.services)
    found.authenticated(principal)
    return found


async def begin(callers: Callers, name: str = "Podcast") -> CreatedWorkspace:
    made: CreatedWorkspace = await callers.call(
        create_workspace, NewWorkspace(name=name), caller=callers.caller("operator")
    )
    return made


def refused(failed: pytest.ExceptionInfo[Refused]) -> tuple[int, str]:
    return failed.value.status, failed.value.code


def test_a_workspace_begins_with_a_key_a_policy_and_a_checkpoint(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        heard: list[str] = []
        callers.app.coordinator.listen(lambda topic, records: heard.append(topic))
        made = await begin(callers)
        topic = topic_of(callers.store, made.workspace_id)
        assert topic is not None
        assert heard == [topic]
        assert made.api_key not in repr(made)
        ((size, _),) = callers.store.checkpoints(topic, 1)
        assert size == callers.store.head(topic).sequence
        admin = caller_of(callers, made.api_key)
        own = await callers.call(list_workspaces, WorkspaceFilter(), caller=admin)
        assert [(one.workspace_id, one.name) for one in own.items] == [(made.workspace_id, "Podcast")]
        keys = await callers.call(list_keys, made.workspace_id, PageQuery(), caller=admin)
        assert [(one.key_id, one.scopes, one.name, one.revoked_at) for one in keys.items] == [
            (made.key_id, ("admin",), None, None)
        ]

    with_callers(tmp_path, test)


def test_a_repeated_request_finds_the_workspace_it_began(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        new = NewWorkspace(name="Podcast")
        first, again = [
            await callers.call(create_workspace, new, caller=callers.caller("operator", idempotency_key="once"))
            for _ in range(2)
        ]
        assert (first, first.api_key) == (again, again.api_key)
        assert len(callers.store.topics()) == 2

    with_callers(tmp_path, test)


def test_operators_page_through_all_workspaces_and_others_see_their_own(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        ids = [callers.workspace_id, *[(await begin(callers)).workspace_id for _ in range(2)]]
        operator, found, after = callers.caller("operator"), [], ""
        while after is not None:
            page = await callers.call(list_workspaces, WorkspaceFilter(limit=2, after=after), caller=operator)
            found += [one.workspace_id for one in page.items]
            after = page.next
        assert found == ids
        own = await callers.call(list_workspaces, WorkspaceFilter())
        assert [one.workspace_id for one in own.items] == [callers.workspace_id]

    with_callers(tmp_path, test)


def test_another_workspace_is_not_found_except_by_operators(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        other = (await begin(callers)).workspace_id
        asked: list[tuple[Any, ...]] = [
            (create_key, other, NewKey(scopes=("read",))),
            (list_keys, other, PageQuery()),
            (revoke_key, other, "key_x"),
            (get_policy, other),
            (set_policy, other, PolicyPatch(block_routes={"auth": ()})),
        ]
        for use, *arguments in asked:
            with pytest.raises(Refused) as failed:
                await callers.call(use, *arguments)
            assert refused(failed) == (404, "workspace_not_found")
        policy = await callers.call(get_policy, other, caller=callers.caller("operator"))
        assert (policy.workspace_id, policy.block_routes["ambiguity"]) == (other, ("role_pm",))

    with_callers(tmp_path, test)


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (NewKey(scopes=("operator",)), (403, "insufficient_scope")),
        (NewKey(scopes=("read", "read")), (422, "scope_repeated")),
        (NewKey(scopes=("agent",)), (422, "agent_id_mismatch")),
        (NewKey(scopes=("read",), agent_id="agt_x"), (422, "agent_id_mismatch")),
        (NewKey(scopes=("agent", "read"), agent_id="agt_x"), (422, "agent_scope_alone")),
        (NewKey(scopes=("agent",), agent_id="agt_x"), (404, "agent_not_found")),
    ],
)
def test_a_key_is_not_given_what_it_may_not_have(tmp_path: Path, new: NewKey, why: tuple[int, str]) -> None:
    async def test(callers: Callers) -> None:
        head = callers.head
        with pytest.raises(Refused) as failed:
            await callers.call(create_key, callers.workspace_id, new)
        assert refused(failed) == why
        assert callers.head == head

    with_callers(tmp_path, test)


def test_a_key_works_until_it_is_revoked(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        made = await callers.call(create_key, callers.workspace_id, NewKey(scopes=("read",), name="mine"))
        assert callers.app.keys.authenticate(made.api_key) is not None
        gone = await callers.call(revoke_key, callers.workspace_id, made.key_id)
        assert (gone.key_id, gone.status) == (made.key_id, "revoked")
        assert callers.app.keys.authenticate(made.api_key) is None
        listed = (await callers.call(list_keys, callers.workspace_id, PageQuery())).items
        assert [(one.name, one.revoked_at is not None) for one in listed if one.key_id == made.key_id] == [
            ("mine", True)
        ]

    with_callers(tmp_path, test)


def test_an_agent_gets_the_same_key_when_its_registration_is_repeated(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent_id = "agt_01JTMX9A2B3C4D5E6F7G8H9JKN"
        register = RegisterAgent(agent_id, "atlas", ref_of("card"))
        await callers.app.coordinator.submit(callers.topic, callers.admin.actor, register)
        first, again = [
            await issue_agent_key(callers.caller("admin", idempotency_key="once"), agent_id) for _ in range(2)
        ]
        assert first == again
        assert caller_of(callers, first).actor.agent_id == agent_id

    with_callers(tmp_path, test)


def test_a_revoked_key_acts_no_more_even_if_the_door_has_not_heard_of_it(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        operator = callers.caller("operator", "admin")
        made = await callers.call(create_key, callers.workspace_id, NewKey(scopes=("operator",)), caller=operator)
        late = caller_of(callers, made.api_key)
        await callers.call(revoke_key, callers.workspace_id, made.key_id, caller=operator)
        with pytest.raises(Refused) as failed:
            await callers.call(create_workspace, NewWorkspace(), caller=late)
        assert refused(failed) == (401, "invalid_token")
        assert len(callers.store.topics()) == 1

    with_callers(tmp_path, test)


def test_only_operators_begin_workspaces(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        with pytest.raises(InsufficientScope):
            await callers.call(create_workspace, NewWorkspace())

    with_callers(tmp_path, test)


def test_a_workspace_that_cannot_be_signed_for_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Signing, unit: Any, topic: str) -> None:
        raise OSError("the keys are gone")

    async def test(callers: Callers) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Signing, "sign_in", broken)
            with pytest.raises(Exception, match="nothing of it was recorded"):
                await begin(callers)
        assert len([*workspaces(callers.store)]) == 1
        # Its topic may be left behind, with nothing in it.
        assert [callers.store.head(topic).sequence for topic in callers.store.topics()[1:]] in ([], [0])

    with_callers(tmp_path, test)


def test_policies_that_change_in_one_unit_are_each_told_at_their_place(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        for name in ("a", "b"):
            await callers.call(create_role, NewRole(name=name))
        one, same, other = await asyncio.gather(
            callers.call(set_policy, callers.workspace_id, PolicyPatch(block_routes={"auth": ("role_a",)})),
            callers.call(set_policy, callers.workspace_id, PolicyPatch(block_routes={"auth": ("role_a",)})),
            callers.call(set_policy, callers.workspace_id, PolicyPatch(block_routes={"auth": ("role_b",)})),
        )
        assert (one.block_routes, other.block_routes) == ({"auth": ("role_a",)}, {"auth": ("role_b",)})
        assert (same.block_routes, same.event_id) == ({}, None)
        assert (await callers.call(get_policy, callers.workspace_id)).block_routes["auth"] == ("role_b",)

    with_callers(tmp_path, test)


def test_a_policy_names_something_once(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        for routes, code in (({}, "nothing_to_change"), ({"auth": ("role_a", "role_a")}, "role_repeated")):
            with pytest.raises(Refused) as failed:
                await callers.call(set_policy, callers.workspace_id, PolicyPatch(block_routes=routes))  # type: ignore[arg-type]
            assert failed.value.findings()[0].code == code

    with_callers(tmp_path, test)


def test_rules_that_hold_already_are_not_raised(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        now = (await callers.call(get_policy, callers.workspace_id)).rules
        with pytest.raises(Refused) as failed:
            await callers.call(
                raise_rules, callers.workspace_id, NewRules(rules=now), caller=callers.caller("operator")
            )
        assert failed.value.status == 409

    with_callers(tmp_path, test)
