"""Repeated requests, for any door: the reply is rendered and kept once, and given again as it was kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from redkey.commands.decision import Refused
from redkey.errors import RedKeyError
from redkey.services.answers import KeptAnswer
from redkey.services.repeats import answer_before, answer_once, keep, kept, must_keep
from redkey.services.use_cases.roles import create_role
from redkey.shapes.operation import Operation
from redkey.shapes.roles import NewRole
from tests.harness.callers import Callers, with_callers


class Door:
    """A door that writes replies in its own way, and counts what it is asked to do."""

    def __init__(self) -> None:
        self.rendered = self.worked = 0

    def render(self, reply: Any) -> tuple[int, str, bytes]:
        self.rendered += 1
        return 207, "text/plain", f"{reply}".encode()

    def work(self, result: Any) -> Any:
        def run() -> Any:
            self.worked += 1
            return result

        return run


def test_a_reply_of_its_moment_is_rendered_once_and_given_again(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        door = Door()
        ask = lambda: callers.caller("admin", idempotency_key="k", repeats="bytes")  # noqa: E731
        first = await answer_once(ask(), door.work("now"), door.render)
        assert (first.status, first.media, first.reply) == (207, "text/plain", b"now")
        assert await answer_once(ask(), door.work("later"), door.render) == first
        assert (door.worked, door.rendered) == (1, 1)
        other = callers.caller("admin", idempotency_key="other", repeats="bytes")
        assert (await answer_once(other, door.work("later"), door.render)).reply == b"later"

    with_callers(tmp_path, test)


def test_the_same_request_sent_twice_at_once_is_done_once(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        door, begun, go_on = Door(), asyncio.Event(), asyncio.Event()

        async def slow() -> str:
            begun.set()
            await go_on.wait()
            return "slow"

        async def ask(result: Any) -> Any:
            who = callers.caller("admin", idempotency_key="k", repeats="bytes")
            return await answer_once(who, door.work(result), door.render)

        first = asyncio.ensure_future(ask(slow()))
        await begun.wait()
        second = asyncio.ensure_future(ask("fast"))
        await asyncio.sleep(0)
        assert not second.done()
        go_on.set()
        assert await first == await second
        assert (door.worked, (await first).reply) == (1, b"slow")
        assert callers.app.services.flights == {}

    with_callers(tmp_path, test)


def test_a_failed_try_keeps_nothing_and_lets_the_next_one_begin(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        door = Door()

        def fail() -> Any:
            raise Refused(409, "no", "No.")

        for work, reply in ((fail, None), (door.work("yes"), b"yes")):
            who = callers.caller("admin", idempotency_key="k", repeats="bytes")
            if reply is None:
                with pytest.raises(Refused):
                    await answer_once(who, work, door.render)
            else:
                assert (await answer_once(who, work, door.render)).reply == reply
        assert callers.app.services.flights == {}

    with_callers(tmp_path, test)


def test_what_the_records_tell_again_is_not_kept(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        door, who = Door(), callers.caller("admin", idempotency_key="k")
        role = await callers.call(create_role, NewRole(name="writer"), caller=who)
        assert not must_keep(who, role)
        assert await kept(who, role, door.render) is role
        without_key = callers.caller("admin")
        assert await kept(without_key, "x", door.render) == "x"
        assert door.rendered == 0

    with_callers(tmp_path, test)


def test_keeping_without_waiting_tells_what_to_send(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        who, door = callers.caller("admin", idempotency_key="k", repeats="bytes"), Door()
        found: asyncio.Future[KeptAnswer | RedKeyError] = asyncio.get_running_loop().create_future()
        assert must_keep(who, "now")
        keep(who, "now", door.render, found.set_result)
        answer = await found
        assert isinstance(answer, KeptAnswer)
        assert not must_keep(who, answer)
        # A later try that is refused is answered with it; one with another body is not.
        again = callers.caller("admin", idempotency_key="k", repeats="bytes")
        assert answer_before(again, Refused(409, "no", "No.")) == answer
        assert answer_before(again, ValueError("a fault")) is None
        again.identify(Operation("test", "POST", "/test", repeats="bytes"), "k", b"", b"other")
        with pytest.raises(Refused) as caught:
            answer_before(again, Refused(409, "no", "No."))
        assert caught.value.code == "idempotency_key_reused"

    with_callers(tmp_path, test)
