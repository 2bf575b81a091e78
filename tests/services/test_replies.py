"""Replies are made inside the unit: what goes wrong with one is its caller's alone, and nothing erased is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redkey.commands.registry import CreateRole, EraseContent
from redkey.commands.tasks import CreateTask
from redkey.errors import RedKeyError, StoreFailed, WriterBusy
from redkey.ledger import content
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.stores.memory import MemoryDisk, MemoryStore
from tests.harness.desk import QUEUE, CountedIds, HandClock
from tests.harness.office import Office


class Breaking(MemoryStore):
    """A store whose unit cannot be committed once something inside it was found damaged, as SQLite's."""

    broken = False

    @contextmanager
    def _transaction(self, wait: bool) -> Iterator[Any]:
        outermost = self.unit is None
        if outermost:
            self.broken = False
        with super()._transaction(wait) as unit:
            yield unit
            if self.broken and outermost:
                raise StoreFailed("the unit is broken")


class Contended(MemoryStore):
    """A store that another process writes to as well: after `hold`, the lock is ours for one unit."""

    contended = granted = False

    def _transaction(self, wait: bool) -> Any:
        if self.unit is None:
            if self.contended and not self.granted:
                raise WriterBusy
            self.granted = False
        return super()._transaction(wait)

    def hold(self) -> None:
        self.granted = True

    def release(self) -> None:
        self.granted = False


def _role(outcome: Outcome, place: Place) -> list[str]:
    return sorted(place.world.roles)


async def _office(kind: type[MemoryStore]) -> Office:
    return await Office(kind(HandClock(), MemoryDisk()), CountedIds()).begin()


def test_damage_that_breaks_the_unit_is_told_to_its_caller_and_everything_is_recorded() -> None:
    async def whole() -> None:
        office = await _office(Breaking)
        store: Any = office.store

        def damaged(outcome: Outcome, place: Place) -> None:
            store.broken = True
            raise StoreFailed("the text is damaged")

        first, second = await asyncio.gather(
            office.do(CreateRole("role_a"), reply=damaged),
            office.do(CreateRole("role_b"), reply=_role),
            return_exceptions=True,
        )
        assert isinstance(first, StoreFailed)
        assert isinstance(second, Outcome)
        assert second.reply == ["role_a", "role_b"]
        assert sorted(row.key for row in store.rows(office.topic, "role")) == ["role_a", "role_b"]

    asyncio.run(whole())


def test_a_reply_that_cannot_be_made_takes_nothing_back() -> None:
    async def whole() -> None:
        office = await _office(MemoryStore)

        def wrong(outcome: Outcome, place: Place) -> None:
            raise ValueError("a fault of ours")

        first, second = await asyncio.gather(
            office.do(CreateRole("role_a"), reply=wrong),
            office.do(CreateRole("role_b"), reply=_role),
            return_exceptions=True,
        )
        assert isinstance(first, RedKeyError)
        assert first.code == "internal_error"
        assert "was recorded" in first.message
        assert isinstance(second, Outcome)
        assert second.reply == ["role_a", "role_b"]

    asyncio.run(whole())


def test_what_the_same_unit_erases_is_shown_to_nobody_after_it() -> None:
    async def whole() -> None:
        office = await _office(MemoryStore)
        text = content.document({"title": "Gone"}, office.ids.nonce())
        command = CreateTask("task_" + office.ids.ulid(), QUEUE, content.ref(text))

        def shown(outcome: Outcome, place: Place) -> tuple[bool, bool]:
            facts = place.content_facts(place.topic, text.sha256)
            return place.document(text.sha256) is not None, facts is not None

        before = await office.do(command, contents=(text,), reply=shown)
        assert before.reply == (True, True)
        _, after = await asyncio.gather(
            office.do(EraseContent(text.sha256)), office.do(CreateRole("role_a"), reply=shown)
        )
        assert after.reply == (False, False)

    asyncio.run(whole())


def test_an_act_is_done_while_commands_come_without_end_and_another_process_writes() -> None:
    async def whole() -> None:
        office = await _office(Contended)
        store: Any = office.store
        store.contended = True
        act = asyncio.ensure_future(office.coordinator.act(office.topic, lambda unit: "done"))

        async def busy(name: str) -> None:
            number = 0
            while not act.done():
                await office.do(CreateRole(f"role_{name}{number}"))
                number += 1

        # Two of them, so that one has arrived whenever the other is answered.
        callers = [asyncio.ensure_future(busy(name)) for name in ("a", "b")]
        try:
            assert await asyncio.wait_for(act, 60) == "done"
        finally:
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)

    asyncio.run(whole())
