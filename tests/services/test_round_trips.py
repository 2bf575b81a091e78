"""How often a unit goes to the database, on a real PostgreSQL: a handful of times, however many requests are in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from typing import Any

import pytest

from redkey import fibers
from redkey.commands.claims import ClaimNext, ClaimTask, CompleteClaim
from redkey.commands.decision import Refused
from redkey.commands.tasks import CreateTask
from redkey.ledger import content
from redkey.ledger.ports import SequencedStore
from redkey.reducers import world
from redkey.services.answers import KeepAnswer, KeptAnswer
from redkey.services.outcome import Outcome
from redkey.services.use_cases.claims import next_reply
from redkey.stores.postgres import PostgresStore
from redkey.stores.postgres.schema import SQL
from redkey.stores.sql_queries import Parameters
from tests.harness.desk import QUEUE, CountedIds
from tests.harness.office import Office

COUNT = 32
# The lock, what is read ahead, the commit.
TRIPS = 3
Asked = tuple[Any, dict[str, Any]]


class Trips:
    """The round trips of a store, without the notices for other servers: a thread sends these beside the units."""

    def __init__(self, store: SequencedStore) -> None:
        assert isinstance(store, PostgresStore)
        self._connections, self._notices = store.connections, 0
        self._fetch, store.connections.fetch = store.connections.fetch, self._counted  # type: ignore[method-assign]

    def _counted(self, sql: str, parameters: Parameters) -> list[Any]:
        self._notices += sql == SQL["notify"]
        return self._fetch(sql, parameters)

    @property
    def count(self) -> int:
        return self._connections.trips - self._notices


class Rounds:
    """Two servers on one database; each round of the first is one unit, whose round trips are counted."""

    def __init__(self, one: Office, other: Office) -> None:
        self.one, self.other = one, other
        self.trips, self.other_trips = Trips(one.store), Trips(other.store)
        self.keys = 0

    def key(self) -> dict[str, str]:
        self.keys += 1
        return {"idem": f"{self.keys:032x}"[::-1], "body": "b" * 16}

    def created(self) -> Asked:
        """A task with a document."""
        task_id = "task_" + self.one.ids.ulid()
        body = content.body(b'{"title":"%s"}' % task_id.encode())
        return CreateTask(task_id, QUEUE, content.ref(body)), {"contents": (body,), **self.key()}

    def claimed(self, agent_id: str) -> Asked:
        """The next task, with its document."""
        command = ClaimNext(QUEUE, agent_id)
        return command, {"reply": lambda outcome, place: next_reply(outcome, place, command), **self.key()}

    async def unit(self, asked: Sequence[Asked], office: Office | None = None) -> tuple[list[Outcome], int]:
        """Ask for everything at once; return the outcomes and the round trips."""
        before = self.trips.count
        done = await asyncio.gather(*((office or self.one).ask(command, **more) for command, more in asked))
        return done, self.trips.count - before

    async def rival_commit(self) -> None:
        """A commit of the other server."""
        await self.unit([self.created()], self.other)


def rounds(test: Callable[[Rounds], Awaitable[None]]) -> Callable[[str], None]:
    """Run a test with two servers on one database."""

    def run(postgres_url: str) -> None:
        async def whole() -> None:
            fibers.run_tasks_in_fibers(asyncio.get_running_loop())
            await asyncio.create_task(inside())

        async def inside() -> None:
            with closing(PostgresStore(postgres_url)) as store, closing(PostgresStore(postgres_url)) as second:
                one = await Office(store, CountedIds(1)).begin()
                other = Office(second, CountedIds(2)).open(one.topic, one.admin.workspace_id)
                await test(Rounds(one, other))
                await one.coordinator.stop()
                await other.coordinator.stop()

        asyncio.run(whole())

    run.__name__ = test.__name__
    return run


@rounds
async def test_keyed_requests_after_a_commit_of_another_server(found: Rounds) -> None:
    await found.unit([found.created()])
    await found.rival_commit()
    _, trips = await found.unit([found.created() for _ in range(COUNT)])
    assert trips <= TRIPS


@rounds
async def test_claims_of_tasks_that_another_server_created(found: Rounds) -> None:
    agents = [await found.one.agent(f"a{number}") for number in range(COUNT)]
    await found.unit([found.created() for _ in range(2 * COUNT)], found.other)
    await found.unit([found.claimed(agents[0])])
    await found.rival_commit()
    done, trips = await found.unit([found.claimed(agent) for agent in agents])
    assert trips <= TRIPS
    titles = {one.reply.task.title for one in done}
    assert titles == {one.reply.task_id for one in done}
    assert len(titles) == COUNT
    # Each task is claimed by name as well, and the miss of each agent is looked up.
    _, trips = await found.unit([(ClaimTask(one.reply.task_id, agents[0]), found.key()) for one in done])
    assert trips <= TRIPS
    done, trips = await found.unit([(CompleteClaim(one.reply.claim_id), found.key()) for one in done])
    assert trips <= TRIPS


@rounds
async def test_keys_that_have_left_the_window(found: Rounds) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(world, "IDEMPOTENCY_LIMIT", COUNT)
        # More than a block of the event index: early keys are found there, late ones in the block that is not complete.
        first, last = [found.created() for _ in range(COUNT)], [found.created() for _ in range(COUNT)]
        await found.unit(first)
        for _ in range(10):
            await found.unit([found.created() for _ in range(COUNT)])
        await found.unit(last)
        await found.unit([found.created() for _ in range(COUNT + 1)])
        _, trips = await found.unit([found.created() for _ in range(COUNT)])
        assert trips <= TRIPS
        head = found.one.head
        for asked in (first, last):
            before = found.trips.count
            tasks = [found.one.ask(command, **more) for command, more in asked]
            refused = await asyncio.gather(*tasks, return_exceptions=True)
            assert found.trips.count - before <= TRIPS
            assert {one.code for one in refused if isinstance(one, Refused)} == {"idempotency_key_expired"}
            assert len(refused) == COUNT
        assert found.one.head == head


@rounds
async def test_replies_that_are_kept(found: Rounds) -> None:
    def kept() -> list[Asked]:
        keys = [found.key() for _ in range(COUNT)]
        answers = [KeptAnswer(key["body"], 200, "application/json", key["idem"].encode()) for key in keys]
        return [(KeepAnswer(key["idem"], answer), {}) for key, answer in zip(keys, answers, strict=True)]

    first = kept()
    await found.unit(first)
    await found.rival_commit()
    _, trips = await found.unit(kept())
    assert trips <= TRIPS
    # The other server answers repeats with what is kept.
    before = found.other_trips.count
    command = found.created()[0]
    repeats = [(command, {"idem": one.idem, "body": one.answer.body}) for one, _ in first]
    done = await asyncio.gather(*(found.other.ask(asked, **more) for asked, more in repeats))
    assert [one.kept.reply.decode() for one in done if one.kept is not None] == [one.idem for one, _ in first]
    assert found.other_trips.count - before <= TRIPS
