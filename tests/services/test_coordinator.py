"""The write path: what shares a commit, what a failure leaves behind, and which callers are answered when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from redkey.commands.actor import Actor
from redkey.commands.claims import ClaimNext, ClaimTask, CompleteClaim, ReleaseClaim
from redkey.commands.decision import Refused
from redkey.commands.draft import Draft
from redkey.commands.registry import CreateKey, CreateRole, GrantRole, RevokeKey, UpdateQueue
from redkey.commands.tasks import CancelTask, CreateTask
from redkey.errors import RedKeyError, StoreFull, StorePoisoned, UpgradeNeeded
from redkey.ledger import content
from redkey.ledger.ports import Content
from redkey.readmodel.world_loading import load_world
from redkey.reducers import agents as agents_reducer
from redkey.services import worlds
from redkey.services.failures import Unavailable
from redkey.services.outcome import Outcome
from redkey.services.submission import Submission
from redkey.services.turns import BATCH_LIMIT
from redkey.services.unit_of_work import BrokenInvariant, TopicWork
from redkey.wire.events import WorkspaceRulesRaised
from tests.harness.desk import QUEUE, ref_of
from tests.harness.invariants import check_topic
from tests.harness.office import Office, claimed_task, turns
from tests.harness.snapshot import snapshot
from tests.services.flaky import FlakyStore


def in_office(test: Callable[[Office, FlakyStore], Awaitable[None]]) -> Callable[[], None]:
    """Run a test in an office of its own; its ledger must keep every invariant at the end."""

    async def whole() -> None:
        store = FlakyStore()
        office = await Office(store).begin()
        store.units.clear()
        await test(office, store)
        await office.coordinator.stop()
        check_topic(store, office.topic)
        assert not office.coordinator._flights
        assert not office.coordinator.awaited

    def run() -> None:
        asyncio.run(whole())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@in_office
async def test_requests_that_arrive_together_share_one_commit(office: Office, store: FlakyStore) -> None:
    await asyncio.gather(*(office.task() for _ in range(30)))
    assert store.units == [60]


@in_office
async def test_a_unit_takes_so_many_requests_and_no_more(office: Office, store: FlakyStore) -> None:
    count = BATCH_LIMIT + 10
    await asyncio.gather(*(office.task() for _ in range(count)))
    assert store.units == [2 * BATCH_LIMIT, 20]


@in_office
async def test_an_answer_comes_after_the_commit_and_not_before(office: Office, store: FlakyStore) -> None:
    heads: list[int] = []
    office.coordinator.listen(lambda topic, records: heads.append(store.head(topic).sequence))
    outcome = await office.do(office.new_task())
    assert heads == [outcome.records[-1].sequence], "listeners hear of what is durable"


@in_office
async def test_one_refused_request_leaves_its_neighbours_alone(office: Office, store: FlakyStore) -> None:
    good, bad, other = office.ask(office.new_task()), office.ask(CancelTask("task_x")), office.ask(office.new_task())
    with pytest.raises(Refused):
        await bad
    assert len((await good).records) == len((await other).records) == 2
    assert len(store.units) == 1


@in_office
async def test_a_failed_commit_changes_nothing_and_everybody_is_told_to_try_again(
    office: Office, store: FlakyStore
) -> None:
    agent, task = await office.agent("ada"), await office.task()
    before, lived = office.head, snapshot(office.coordinator.peek(office.topic))
    store.fail_next.append(StoreFull())
    asked = [office.ask(ClaimTask(task, agent)), office.ask(office.new_task())]
    for one in asked:
        with pytest.raises(StoreFull):
            await one
    assert office.head == before
    assert snapshot(office.coordinator.peek(office.topic)) == lived, "no world is ahead of its commit"
    claim_id = await office.hold(task, agent)
    await office.complete(claim_id)


@in_office
async def test_after_a_failed_commit_the_same_key_is_answered_as_if_it_had_come_once(
    office: Office, store: FlakyStore
) -> None:
    command, key = office.new_task(), {"idem": "a" * 32, "body": "b" * 16}
    store.fail_next.append(StoreFull())
    with pytest.raises(StoreFull):
        await office.do(command, **key)
    first = await office.do(command, **key)
    again = await office.do(command, **key)
    assert (again.records, again.repeated) == (first.records, True)


@in_office
async def test_what_cannot_be_done_hurts_only_itself(office: Office, store: FlakyStore) -> None:
    """A fault of RedKey in one of many: the unit is given up, and each request is retried alone."""
    agent = await office.agent("ada")
    await office.task()
    asked = [office.ask(office.new_task()), office.ask(_Unsound()), office.ask(ClaimNext(QUEUE, agent))]
    with pytest.raises(RedKeyError) as failed:
        await asked[1]
    assert failed.value.code == "internal_error"
    assert isinstance(failed.value.__cause__, AssertionError)
    assert (await asked[0]).records
    assert claimed_task(await asked[2]) is not None


class _Unsound:
    """A command that cannot be decided."""


@in_office
async def test_content_that_is_not_what_it_says_hurts_only_itself(office: Office, store: FlakyStore) -> None:
    forged = Content("ab" * 32, b"not that")
    asked = [office.ask(CreateRole("role_x", ref_of("x"))), office.ask(CreateRole("role_y"), contents=(forged,))]
    with pytest.raises(RedKeyError):
        await asked[1]
    assert (await asked[0]).records
    assert office.coordinator.peek(office.topic).roles.keys() == {"role_x"}
    assert store.content(office.topic, forged.sha256) is None


@in_office
async def test_a_workspace_of_newer_rules_holds_up_nobody_else(office: Office, store: FlakyStore) -> None:
    other = await Office(store, office.ids).begin()
    world = office.coordinator.peek(other.topic)
    where = f"workspace:{world.workspace.workspace_id}"
    with store.write(other.topic) as unit:
        work = TopicWork(unit, other.topic, load_world(unit, other.topic), office.ids)
        work.note([Draft(WorkspaceRulesRaised(rules=99), where, where)])
        work.finish()
    store.units.clear()
    asked = [office.coordinator.submit(other.topic, other.admin, other.new_task()) for _ in range(2)]
    here, *there = await asyncio.gather(office.do(office.new_task()), *asked, return_exceptions=True)
    assert isinstance(here, Outcome)
    assert [type(one) for one in there] == [UpgradeNeeded, UpgradeNeeded]
    assert store.units == [2], "nobody was tried twice"
    with pytest.raises(UpgradeNeeded):
        office.coordinator.peek(other.topic)


def test_an_fsync_that_failed_stops_everything() -> None:
    async def whole() -> None:
        store = FlakyStore()
        office = await Office(store).begin()
        store.fail_next.append(StorePoisoned())
        asked = [office.ask(office.new_task()) for _ in range(2)]
        for one in asked:
            with pytest.raises(StorePoisoned):
                await one
        assert len(office.fatal) == 1
        with pytest.raises(StorePoisoned):
            await office.do(office.new_task())
        assert office.coordinator.stopping

    asyncio.run(whole())


@in_office
async def test_a_caller_that_is_gone_before_the_unit_is_not_recorded(office: Office, store: FlakyStore) -> None:
    before = office.head
    gone = office.ask(office.new_task())
    await turns(1)
    gone.cancel()
    await turns()
    assert office.head == before


# Workers that wait.


@in_office
async def test_a_new_task_wakes_one_waiter_and_not_all(office: Office, store: FlakyStore) -> None:
    waiters = [office.wait_for_task(await office.agent(f"agent{number}")) for number in range(3)]
    await turns()
    assert office.coordinator.awaited
    first = await office.task()
    assert claimed_task(await waiters[0]) == first
    await turns()
    assert [one.done() for one in waiters] == [True, False, False]
    second = await office.task()
    assert claimed_task(await waiters[1]) == second, "first come, first served"
    await office.task()
    await waiters[2]


@in_office
async def test_a_waiter_that_may_not_have_the_task_does_not_take_the_wake(office: Office, store: FlakyStore) -> None:
    plain, able = await office.agent("plain"), await office.agent("able", "role_x")
    waiting = [office.wait_for_task(plain), office.wait_for_task(able)]
    await turns()
    task = await office.task(roles=("role_x",))
    assert claimed_task(await waiting[1]) == task
    await turns()
    assert not waiting[0].done()
    await office.task()
    await waiting[0]


@in_office
async def test_what_was_offered_to_a_waiter_that_is_gone_goes_to_the_next(office: Office, store: FlakyStore) -> None:
    agents = [await office.agent(slug) for slug in ("ada", "bob")]
    gone, next_one = (office.wait_for_task(agent) for agent in agents)
    await turns()
    creating = office.ask(office.new_task())
    while not office.head or store.units[-1:] != [2]:
        await asyncio.sleep(0)
    gone.cancel()
    created = await creating
    task_id = created.records[0].wire["stream"]["stream_id"].split(":")[1]
    assert claimed_task(await asyncio.wait_for(next_one, 60)) == task_id
    with pytest.raises(asyncio.CancelledError):
        await gone


@in_office
async def test_a_waiter_whose_caller_is_gone_gets_no_claim(office: Office, store: FlakyStore) -> None:
    waiting = office.wait_for_task(await office.agent("ada"))
    await turns()
    waiting.cancel()
    await turns()
    task = await office.task()
    await turns()
    assert office.coordinator.peek(office.topic).tasks[task].state == "available"


@in_office
async def test_callers_learn_when_they_begin_to_wait_each_of_them_once(office: Office, store: FlakyStore) -> None:
    """An interface holds the authority of a caller from then on: what a unit answers at once needs no hold."""
    agent, begun, answered = await office.agent("ada"), list[str](), list[str]()

    def claim(name: str) -> Submission:
        submission = office.coordinator.enqueue(
            office.topic,
            office.admin,
            ClaimNext(QUEUE, agent, 60),
            (),
            lambda _: answered.append(name),
            idem="same",
            wait_seconds=30,
        )
        submission.when_waiting(lambda: begun.append(name))
        return submission

    assert claim("first") is claim("sent again")
    assert begun == []
    await turns()
    assert begun == ["first", "sent again"]
    claim("sent late")
    assert begun == ["first", "sent again", "sent late"]
    await office.task()
    await turns()
    assert answered == ["first", "sent again", "sent late"]
    await office.task()
    office.coordinator.enqueue(
        office.topic,
        office.admin,
        ClaimNext(QUEUE, agent, 60),
        (),
        lambda _: answered.append("at once"),
        wait_seconds=30,
    ).when_waiting(lambda: begun.append("at once"))
    await turns()
    assert answered[-1] == "at once"
    assert "at once" not in begun


@in_office
async def test_a_waiter_is_told_when_its_time_is_over(office: Office, store: FlakyStore) -> None:
    agent = await office.agent("ada")
    before = office.head
    outcome = await office.wait_for_task(agent, 0.01)
    assert outcome.answer == {"status": "no_tasks"}
    assert office.head == before
    task = await office.task()
    assert claimed_task(await office.do(ClaimNext(QUEUE, agent))) == task


@pytest.mark.parametrize("opening", ["released", "granted", "resumed"])
def test_waiters_ask_again_when_something_else_opens_the_way(opening: str) -> None:
    @in_office
    async def whole(office: Office, store: FlakyStore) -> None:
        holder, agent = await office.agent("ada", "role_x"), await office.agent("bob")
        needs = ("role_x",) if opening == "granted" else ()
        task = await office.task(roles=needs)
        claim = await office.hold(task, holder)
        if opening != "released":
            await office.do(ReleaseClaim(claim))
        if opening == "resumed":
            await office.do(UpdateQueue(QUEUE, {"paused": True}))
        waiting = office.wait_for_task(agent)
        await turns()
        assert not waiting.done()
        await office.do(
            {
                "released": ReleaseClaim(claim),
                "granted": GrantRole("role_x", agent),
                "resumed": UpdateQueue(QUEUE, {"paused": False}),
            }[opening]
        )
        assert claimed_task(await asyncio.wait_for(waiting, 60)) == task

    whole()


@in_office
async def test_stopping_answers_those_who_wait_and_records_what_has_arrived(office: Office, store: FlakyStore) -> None:
    waiting = office.wait_for_task(await office.agent("ada"))
    await turns()
    arrived = office.ask(office.new_task())
    await turns(1)
    await office.coordinator.stop()
    assert (await waiting).answer == {"status": "no_tasks"}
    assert (await arrived).records
    with pytest.raises(Unavailable):
        await office.do(office.new_task())


@in_office
async def test_nobody_is_kept_waiting_once_stopping_has_begun(office: Office, store: FlakyStore) -> None:
    agent = await office.agent("ada")
    office.coordinator.begin_stop()
    assert (await office.wait_for_task(agent)).answer == {"status": "no_tasks"}


# Repeats.


@in_office
async def test_a_repeat_in_the_same_batch_and_after_it_gets_the_same_records(office: Office, store: FlakyStore) -> None:
    command, key = office.new_task(), {"idem": "a" * 32, "body": "b" * 16}
    together = await asyncio.gather(*(office.do(command, **key) for _ in range(5)))
    later = await office.do(command, **key)
    assert all(one.records == later.records for one in together)
    assert store.units == [2, 0]


@in_office
async def test_the_same_key_with_another_body_is_refused_in_flight_and_after(office: Office, store: FlakyStore) -> None:
    first = office.ask(office.new_task(), idem="a" * 32, body="b" * 16)
    await turns(1)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await office.do(office.new_task(), idem="a" * 32, body="c" * 16)
        assert (refused.value.status, refused.value.code) == (422, "idempotency_key_reused")
        await first


@in_office
async def test_a_retry_joins_the_first_and_survives_its_caller(office: Office, store: FlakyStore) -> None:
    agent, key = await office.agent("ada"), {"idem": "a" * 32, "body": "b" * 16}
    first = office.wait_for_task(agent, **key)
    await turns()
    second = office.wait_for_task(agent, **key)
    await turns()
    first.cancel()
    await turns()
    task = await office.task()
    assert claimed_task(await second) == task
    again = await office.do(ClaimNext(QUEUE, agent, 60), **key)
    assert claimed_task(again) == task


@in_office
async def test_a_retry_after_everybody_gave_up_begins_anew(office: Office, store: FlakyStore) -> None:
    agent, key = await office.agent("ada"), {"idem": "a" * 32, "body": "b" * 16}
    first = office.wait_for_task(agent, **key)
    await turns()
    first.cancel()
    await asyncio.sleep(0)
    second = office.wait_for_task(agent, **key)
    await turns()
    task = await office.task()
    assert claimed_task(await asyncio.wait_for(second, 60)) == task


# Worlds.


@in_office
async def test_worlds_that_nobody_uses_are_let_go_and_come_back(office: Office, store: FlakyStore) -> None:
    agent, task = await office.agent("ada"), await office.task(deadline_seconds=100)
    lived = snapshot(office.coordinator.peek(office.topic))
    office.coordinator.let_go_idle()
    assert office.coordinator._worlds.get(office.topic) is not None, "it was used a moment ago"
    office.coordinator.let_go_idle()
    assert office.coordinator._worlds.get(office.topic) is None
    due = store.head(office.topic).timestamp + 101 * 10**9
    assert office.coordinator.due_topics(due, 0) == [office.topic], "what will be due in it is not forgotten"
    assert snapshot(office.coordinator.peek(office.topic)) == lived
    await office.hold(task, agent)


@in_office
async def test_a_world_in_which_somebody_waits_stays(office: Office, store: FlakyStore) -> None:
    waiting = office.wait_for_task(await office.agent("ada"))
    await turns()
    for _ in range(3):
        office.coordinator.let_go_idle()
    assert office.coordinator._worlds.get(office.topic) is not None
    await office.task()
    await waiting


def test_too_many_worlds_are_let_go_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "WORLDS_LIMIT", 2)

    async def whole() -> None:
        store = FlakyStore()
        office = await Office(store).begin()
        topics = [office.topic]
        for _ in range(3):
            other = Office(store, office.ids)
            other.coordinator = office.coordinator
            topics.append((await other.begin()).topic)
        loaded = [topic for topic in topics if office.coordinator._worlds.get(topic) is not None]
        assert loaded == topics[-2:]
        assert (await office.do(office.new_task())).records

    asyncio.run(whole())


@in_office
async def test_a_tick_records_what_is_due(office: Office, store: FlakyStore) -> None:
    agent, task = await office.agent("ada"), await office.task()
    await office.hold(task, agent, 5)
    states = []
    for seconds in (4, 2):
        store.clock.advance(seconds)
        office.coordinator.tick(office.topic)
        await turns()
        states.append(office.coordinator.peek(office.topic).tasks[task].state)
    assert states == ["claimed", "available"]


@in_office
async def test_a_decision_that_breaks_a_rule_of_ours_is_not_recorded(office: Office, store: FlakyStore) -> None:
    """A wire that the fold finds void must not be written: the fault is RedKey's, and nothing is recorded."""
    before, real = office.head, agents_reducer.role_created
    agents_reducer.role_created = lambda world, e, p: "because"
    try:
        with pytest.raises(BrokenInvariant):
            await office.do(CreateRole("role_x"))
    finally:
        agents_reducer.role_created = real
    assert office.head == before


@in_office
async def test_a_key_that_was_revoked_elsewhere_does_nothing_here(office: Office, store: FlakyStore) -> None:
    key_id = "key_" + office.ids.ulid()
    await office.do(CreateKey(key_id, "rk_x", ("admin",)))
    other = Office(store, office.ids).open(office.topic, office.admin.workspace_id)
    await other.do(RevokeKey(key_id))
    with pytest.raises(Refused) as refused:
        await office.do(CreateRole("role_x"), Actor(office.admin.workspace_id, key_id, frozenset({"admin"})))
    assert refused.value.status == 401


@in_office
async def test_the_next_claim_is_told_again_with_the_completion(office: Office, store: FlakyStore) -> None:
    agent, key = await office.agent("ada"), {"idem": "a" * 32, "body": "b" * 16}
    tasks = [await office.task() for _ in range(2)]
    command = CompleteClaim(await office.hold(tasks[0], agent), claim_next=ClaimNext(QUEUE, agent, 60))
    first = await office.do(command, **key)
    office.coordinator._worlds.drop(office.coordinator._worlds.lend(office.topic))
    again = await office.do(command, **key)
    assert (first.records, first.next.records) == (again.records, again.next.records)  # type: ignore[union-attr]
    last = CompleteClaim(
        first.next.first("task.claimed").wire["payload"]["claim_id"],  # type: ignore[union-attr]
        claim_next=ClaimNext(QUEUE, agent, 60),
    )
    nothing = await office.do(last, idem="c" * 32, body="b" * 16)
    await office.task()
    repeated = await office.do(last, idem="c" * 32, body="b" * 16)
    assert nothing.next.answer == repeated.next.answer == {"status": "no_tasks"}  # type: ignore[union-attr]


@in_office
async def test_content_comes_with_the_records_that_name_it(office: Office, store: FlakyStore) -> None:
    text = content.body(b"hello")
    task_id = "task_" + office.ids.ulid()
    await office.do(CreateTask(task_id, QUEUE, content.ref(text)), contents=(text,))
    found = store.content(office.topic, text.sha256)
    assert found is not None
    assert found.data == b"hello"


@in_office
async def test_a_retry_that_comes_as_its_first_caller_goes_is_done_all_the_same(
    office: Office, store: FlakyStore
) -> None:
    first = office.ask(office.new_task(), idem="a" * 32, body="b" * 16)
    await asyncio.sleep(0)
    again = office.ask(office.new_task(), idem="a" * 32, body="b" * 16)
    first.cancel()
    # The unit starts without it; the retry comes next, and only then does the first caller leave.
    office.coordinator._drain(1, 0)
    assert (await asyncio.wait_for(again, 60)).records
    with pytest.raises(asyncio.CancelledError):
        await first
