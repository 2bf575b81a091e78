"""People by their use cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.use_case import InsufficientScope
from redkey.services.use_cases.people import (
    create_person_code,
    end_person_session,
    invite_person,
    list_people,
    remove_person,
)
from redkey.shapes.fields import PageQuery
from redkey.shapes.people import NewPerson
from tests.harness.callers import Callers, with_callers

ADA = NewPerson(email="Ada@Example.org", name="Ada", scopes=("produce", "read"))


def test_a_person_is_invited_listed_and_removed(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        invited = await callers.call(invite_person, callers.workspace_id, ADA)
        assert (invited.delivery, bool(invited.login_code)) == ("by_hand", True)
        assert invited.login_code not in repr(invited)
        (found,) = (await callers.call(list_people, callers.workspace_id, PageQuery())).items
        assert (found.person_id, found.name, found.scopes) == (invited.person_id, "Ada", ("produce", "read"))
        assert (found.last_login_at, found.sessions, found.revoked_at) == (None, (), None)
        removed = await callers.call(remove_person, callers.workspace_id, invited.person_id)
        assert removed.status == "removed"
        for use in (remove_person, create_person_code):
            with pytest.raises(Refused) as failed:
                await callers.call(use, callers.workspace_id, invited.person_id)
            assert (failed.value.status, failed.value.code) == (404, "person_not_found")

    with_callers(tmp_path, test)


def test_a_repeated_invitation_is_one_person_with_the_same_code(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        async def invite(key: str) -> tuple[str, str]:
            caller = callers.caller("admin", idempotency_key=key)
            invited = await callers.call(invite_person, callers.workspace_id, ADA, caller=caller)
            return invited.person_id, invited.login_code

        first = await invite("one")
        assert await invite("one") == first
        with pytest.raises(Refused) as failed:
            await invite("another")
        assert (failed.value.status, failed.value.code) == (409, "person_exists")
        # Another spelling of the address is the same address.
        other = NewPerson(email="ada@example.org")
        with pytest.raises(Refused, match="invited"):
            await callers.call(invite_person, callers.workspace_id, other)
        again = await callers.call(create_person_code, callers.workspace_id, first[0])
        assert again.login_code not in ("", first[1])

    with_callers(tmp_path, test)


@pytest.mark.parametrize(
    ("new", "status", "code"),
    [
        (NewPerson(email="nobody"), 422, "address_invalid"),
        (NewPerson(email="a@example.org", scopes=("read", "read")), 422, "scope_repeated"),
        (NewPerson(email="a@example.org", scopes=("operator",)), 403, "insufficient_scope"),
    ],
)
def test_an_invitation_that_is_refused_leaves_nothing(tmp_path: Path, new: NewPerson, status: int, code: str) -> None:
    async def test(callers: Callers) -> None:
        head = callers.head
        with pytest.raises(Refused) as failed:
            await callers.call(invite_person, callers.workspace_id, new)
        assert (failed.value.status, failed.value.code, callers.head) == (status, code, head)

    with_callers(tmp_path, test)


def test_people_are_managed_with_the_scope_admin_alone(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        invited = await callers.call(invite_person, callers.workspace_id, ADA)
        producer, head = callers.caller("produce", "agent", "read"), callers.head
        for use, arguments in (
            (invite_person, [NewPerson(email="b@example.org")]),
            (create_person_code, [invited.person_id]),
            (list_people, [PageQuery()]),
            (end_person_session, [invited.person_id, "ses_1"]),
            (remove_person, [invited.person_id]),
        ):
            with pytest.raises(InsufficientScope):
                await callers.call(use, callers.workspace_id, *arguments, caller=producer)
        assert callers.head == head
        with pytest.raises(Refused) as failed:
            await callers.call(end_person_session, callers.workspace_id, invited.person_id, "ses_1")
        assert failed.value.code == "session_not_found"

    with_callers(tmp_path, test)
