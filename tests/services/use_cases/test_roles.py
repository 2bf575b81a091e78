"""Roles by their use cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_case import InsufficientScope
from redkey.services.use_cases.agents import register_card
from redkey.services.use_cases.roles import create_role, get_role, grant_role, patch_role, remove_role
from redkey.shapes.agents import AgentRegistration
from redkey.shapes.roles import NewRole, RolePatch
from tests.harness.callers import Callers, with_callers


def test_a_role_is_changed_in_what_is_named_and_removed_from_its_holders(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        new = NewRole(name="Editor", description="Edits texts.", capabilities=("Writing",))
        made = await callers.call(create_role, new)
        agent = await callers.call(register_card, AgentRegistration(card={"name": "Atlas"}))
        await callers.call(grant_role, made.id, agent.agent_id)
        changed = await callers.call(patch_role, "editor", RolePatch(description="Edits and checks."))
        assert (changed.name, changed.description, changed.capabilities) == (
            "Editor",
            "Edits and checks.",
            ("writing",),
        )
        changed = await callers.call(patch_role, made.id, RolePatch(capabilities=()))
        assert (changed.description, changed.capabilities) == ("Edits and checks.", ())
        head = callers.head
        with pytest.raises(Refused) as failed:
            await callers.call(patch_role, made.id, RolePatch())
        assert (failed.value.code, callers.head) == ("nothing_to_change", head)
        removed = await callers.call(remove_role, made.id)
        assert (removed.status, removed.agents) == ("removed", (agent.agent_id,))
        for use, arguments in ((get_role, ()), (patch_role, (RolePatch(name="A"),)), (remove_role, ())):
            with pytest.raises(Refused) as failed:
                await callers.call(use, made.id, *arguments)
            assert (failed.value.status, failed.value.code) == (404, "role_not_found")

    with_callers(tmp_path, test)


@pytest.mark.parametrize(("new", "pointer"), [(NewRole(id="a b", name="A"), "/id"), (NewRole(id="-", name="A"), "/id")])
def test_an_id_that_cannot_be_one_is_refused(tmp_path: Path, new: NewRole, pointer: str) -> None:
    async def test(callers: Callers) -> None:
        with pytest.raises(Refused) as failed:
            await callers.call(create_role, new)
        assert (failed.value.code, failed.value.pointer) == ("role_invalid", pointer)
        assert "27 letters" in failed.value.message

    with_callers(tmp_path, test)


def test_roles_are_changed_with_the_scope_admin_alone(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        await callers.call(create_role, NewRole(name="Editor"))
        for use, arguments in ((patch_role, (RolePatch(name="A"),)), (remove_role, ())):
            with pytest.raises(InsufficientScope):
                await callers.call(use, "editor", *arguments, caller=callers.caller("agent", "read"))

    with_callers(tmp_path, test)
