"""Signup and login codes by their use cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.commands.actor import Actor
from redkey.commands.decision import Refused
from redkey.config import Signup
from redkey.services.caller import Caller
from redkey.services.use_cases.login_codes import create_login_code, exchange_login_code
from redkey.services.use_cases.queues import create_queue
from redkey.services.use_cases.signup import sign_up
from redkey.services.use_cases.usage import get_credits
from redkey.shapes.login_codes import LoginCodeExchange
from redkey.shapes.queues import NewQueue
from redkey.shapes.signup import NewSignup
from tests.harness.callers import Callers, with_callers


def stranger(callers: Callers) -> Caller:
    """A caller without a key, as an open operation gets it."""
    found = Caller(callers.app.services)
    found.actor, found.topic = Actor("", "", frozenset()), ""
    return found


def test_anyone_creates_a_workspace_of_their_own(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        made = [await callers.call(sign_up, NewSignup(name="Mine"), caller=stranger(callers)) for _ in range(2)]
        assert len({one.workspace_id for one in made} | {callers.workspace_id}) == 3
        assert made[0].api_key not in repr(made[0])
        owner = callers.with_key(made[0].api_key)
        assert owner.actor.workspace_id == made[0].workspace_id
        await callers.call(create_queue, NewQueue(name="One"), caller=owner)
        assert (await callers.call(get_credits, caller=owner)).granted == made[0].credits == 50
        # The first workspace has no part in it.
        assert (await callers.call(get_credits)).balance is None

    with_callers(tmp_path, test, signup=Signup(enabled=True, credits=50))


def test_signups_are_limited_whichever_interface_they_come_through(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        for _ in range(2):
            await callers.call(sign_up, NewSignup(), caller=stranger(callers))
        topics = list(callers.store.topics())
        with pytest.raises(Refused) as failed:
            await callers.call(sign_up, NewSignup(), caller=stranger(callers))
        assert (failed.value.status, failed.value.code) == (429, "signups_limited")
        assert failed.value.retry_seconds > 0
        assert list(callers.store.topics()) == topics

    with_callers(tmp_path, test, signup=Signup(enabled=True, per_hour=2))


def test_a_server_that_does_not_allow_signup_creates_nothing(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        topics = list(callers.store.topics())
        with pytest.raises(Refused) as failed:
            await callers.call(sign_up, NewSignup(), caller=stranger(callers))
        assert (failed.value.status, failed.value.code) == (403, "signup_disabled")
        assert list(callers.store.topics()) == topics

    with_callers(tmp_path, test)


def test_a_login_code_is_exchanged_once_for_a_token_of_its_key(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        caller = callers.with_key(callers.app.first_key or "")
        code = await callers.call(create_login_code, caller=caller)
        assert code.url.endswith(f"/studio/#code={code.secret}")
        token = await callers.call(exchange_login_code, LoginCodeExchange(code=code.secret), caller=stranger(callers))
        holder = callers.app.tokens.holder(token.access_token)
        assert holder is not None
        assert holder.actor.key_id == caller.actor.key_id
        for wrong in (code.secret, "invented"):
            with pytest.raises(Refused) as failed:
                await callers.call(exchange_login_code, LoginCodeExchange(code=wrong), caller=stranger(callers))
            assert (failed.value.status, failed.value.code) == (401, "login_code_invalid")

    with_callers(tmp_path, test)
