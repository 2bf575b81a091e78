"""The fold of a workspace: it handles any order of valid wires, is deterministic, and uses bounded memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.commands.claims import (
    AddArtifact,
    BlockClaim,
    ClaimNext,
    ClaimTask,
    FailClaim,
    HeartbeatClaim,
    PlanClaim,
    ReleaseClaim,
    ReportProgress,
    ReportUsage,
    StartClaim,
    Used,
)
from redkey.commands.policies import SetPolicy
from redkey.commands.projects import ChangeProject, CreateProject
from redkey.commands.registry import (
    CreateKey,
    CreateRole,
    DeactivateAgent,
    GrantCredits,
    HeartbeatAgent,
    ReadMessage,
    RemoveRole,
    RevokeKey,
    RevokeRole,
    SendMessage,
    UpdateAgent,
    UpdateQueue,
    UpdateRole,
)
from redkey.commands.tasks import AddMessage, CancelTask, RaiseConcern, RetryTask, UnblockTask
from redkey.commands.webhooks import RemovePush, RemoveWebhook, SetPush, SetWebhook
from redkey.errors import UpgradeNeeded
from redkey.ledger.record import LOCAL_PAYER
from redkey.reducers import world as worlds
from redkey.reducers.changes import Changes
from redkey.reducers.entities import Task
from redkey.reducers.fold import fold
from redkey.reducers.world import SECOND, SMALL_HEAP, World
from redkey.wire.catalogue import catalogue
from redkey.wire.envelope import wire_from
from redkey.wire.events import PAYLOADS
from tests.harness.desk import QUEUE, Desk, ref_of
from tests.harness.snapshot import snapshot

Wire = dict[str, Any]


@cache
def history() -> tuple[tuple[Wire, int], ...]:
    """The wires of a busy hour, and their times."""
    desk = Desk()
    ada, bob = desk.agent("ada", "role_pm", capabilities=("search",)), desk.agent("bob")
    first, second = desk.task(roles=("role_pm",)), desk.task(max_attempts=2, deadline_seconds=3000)
    third = desk.task(waits_for=(first, second))
    claim = desk.hold(first, ada, 60)
    desk.claim(first, bob)
    desk.do(StartClaim(claim))
    desk.do(HeartbeatClaim(claim, 1800))
    desk.do(HeartbeatClaim(claim))
    desk.clock.advance(40)
    desk.do(HeartbeatClaim(claim))
    desk.tick(70)
    desk.do(HeartbeatClaim(claim))
    desk.do(BlockClaim(claim, "ambiguity", ref_of("why")))
    desk.do(UnblockTask(first))
    desk.do(ReleaseClaim(desk.hold(first, ada)))
    desk.complete(desk.hold(first, ada))
    claim = desk.hold(second, bob)
    desk.claim(second, ada)
    report = "art_" + desk.ids.ulid()
    desk.do(AddArtifact(claim, report, "report", ref_of("about"), "ab" * 32, 7))
    newer = AddArtifact(claim, "art_" + desk.ids.ulid(), "report", ref_of("newer"), "cd" * 32, 8, supersedes=report)
    desk.do(newer)
    desk.do(PlanClaim(claim, ref_of("plan")))
    desk.do(ReportProgress(claim, 60, ref_of("half")))
    desk.do(ReportUsage(claim, (Used("gpt-5", 0.25, 100, 10), Used(cost_usd=0.1))))
    desk.do(AddMessage(second, "msg_" + desk.ids.ulid(), "human", ref_of("hello")))
    desk.do(RaiseConcern(second, "msg_" + desk.ids.ulid(), "minor", ref_of("hm")))
    desk.do(FailClaim(claim, "error"))
    desk.do(DeactivateAgent(bob))
    desk.do(ClaimTask(second, bob))
    desk.do(UpdateAgent(bob, active=True, slug="rob"))
    desk.do(UpdateQueue(QUEUE, {"lease_losses": 1}))
    desk.hold(second, bob, 5)
    desk.tick(300)
    desk.do(RetryTask(second))
    desk.do(RetryTask(third))
    desk.do(CancelTask(third))
    desk.do(ClaimNext(QUEUE, bob, 60, 2))
    desk.do(SendMessage("msg_" + desk.ids.ulid(), "human", 1, "info", ref_of("x")))
    desk.do(ReadMessage(next(iter(desk.world.messages))))
    desk.do(CreateKey("key_" + desk.ids.ulid(), "rk_x", ("read",)))
    desk.do(RevokeKey(next(iter(desk.world.keys))))
    desk.do(GrantCredits(100))
    desk.do(SetPolicy({"ambiguity": ("role_pm",), "auth": ("role_pm",)}, {"task": 2.5, "day": 20}))
    desk.do(SetPolicy(cost_caps={"task": None}))
    desk.do(SetWebhook("whk_00000000000000000000000001", ref_of("settings")))
    desk.do(RemoveWebhook("whk_00000000000000000000000001"))
    desk.do(SetPush("psh_00000000000000000000000001", "task_00000000000000000000000001", ref_of("settings")))
    desk.do(RemovePush("psh_00000000000000000000000001", "task_00000000000000000000000001"))
    desk.do(HeartbeatAgent(ada, 3, 1))
    desk.do(RevokeRole("role_pm", ada))
    desk.do(CreateRole("role_extra", ref_of("extra")))
    desk.do(UpdateRole("role_extra", ref_of("more")))
    desk.do(RemoveRole("role_extra"))
    desk.do(CreateProject("vault", ref_of("vault")))
    desk.do(CreateProject("design", ref_of("design"), "vault"))
    for kind, subject in (("phase", "design"), ("project", "vault")):
        desk.do(ChangeProject(kind, subject, "on_hold"))
        desk.do(ChangeProject(kind, subject, completes=True))
    desk.tick(2000)
    return tuple((one.wire, one.timestamp) for one in desk.records())


def test_every_event_type_that_coordination_records_is_in_the_history() -> None:
    """Without this, the tests below would cover less than they claim; plans, gates, the log itself and ordered
    workspaces have their own tests."""
    elsewhere = (
        "workflow.",
        "gate.",
        "definition.",
        "signer.",
        "ledger.",
        "checkpoint.",
        "content.",
        "party.",
        "workspace.r",
        "topic.",
        "queue.claim_requested",
    )
    recorded = {wire["type"] for wire, _ in history()}
    missing = {name for name in PAYLOADS if not name.startswith(elsewhere)} - recorded
    assert missing == {"credits.priced", "key.recovered"}


def test_every_event_type_of_the_catalogue_has_a_reducer() -> None:
    assert set(catalogue()) == set(PAYLOADS)


@given(st.data())
def test_any_wires_in_any_order_fold_and_what_is_void_changes_nothing(data: st.DataObject) -> None:
    wires = data.draw(st.lists(st.sampled_from(history()), min_size=1, max_size=60))
    if data.draw(st.booleans()):
        wires = [*history()[:30], *wires]
    world, now = World(), 0
    for place, (wire, timestamp) in enumerate(wires, 1):
        now = max(now + 1, timestamp)
        before = _moved_only(snapshot(world))
        void = fold(world, Changes(), wire_from(wire), place, now, LOCAL_PAYER)
        if void is not None:
            assert _moved_only(snapshot(world)) == before, (wire["type"], void)


def _moved_only(seen: dict[str, Any]) -> dict[str, Any]:
    """Return the state without sequences, and without entries that expire with time."""
    for name in ("sequence", "timestamp", "tombstones", "tasks", "timers", "runs", "gates"):
        seen.pop(name)
    for kind in ("agents", "roles", "queues"):
        for entity in seen[kind].values():
            entity.pop("stream_seq", None)
            entity.pop("last_act_at", None)
            entity.pop("lost", None)
    seen["workspace"].pop("stream_seq", None)
    return seen


def test_the_same_records_give_the_same_world() -> None:
    worlds_made = [World(), World()]
    for place, (wire, timestamp) in enumerate(history(), 1):
        for world in worlds_made:
            fold(world, Changes(), wire_from(wire), place, timestamp, LOCAL_PAYER)
    assert snapshot(worlds_made[0]) == snapshot(worlds_made[1])


def test_a_record_out_of_place_is_refused() -> None:
    (wire, timestamp), *_ = history()
    with pytest.raises(ValueError, match="cannot follow"):
        fold(World(), Changes(), wire_from(wire), 2, timestamp, LOCAL_PAYER)


def test_newer_rules_need_a_newer_reader() -> None:
    world = World()
    (created, timestamp), (after, later), *_ = history()
    created = created | {"payload": created["payload"] | {"rules": worlds.RULES + 1}}
    assert fold(world, Changes(), wire_from(created), 1, timestamp, LOCAL_PAYER) is None
    with pytest.raises(UpgradeNeeded):
        fold(world, Changes(), wire_from(after), 2, later, LOCAL_PAYER)


# Memory follows the live work.


def _task(number: int, state: str = "available", **more: Any) -> Task:
    task_id = f"task_{number:026d}"
    return Task(task_id, 1, state, QUEUE, 2, number, 0, 0, "", 0, "queue:x", **more)


def test_offers_that_are_no_longer_true_do_not_pile_up() -> None:
    """This holds also for an entry deep in a heap, below a task that no agent claims."""
    world = World()
    for number in range(20 * SMALL_HEAP):
        task = _task(number)
        if number:
            task.priority = 3
        world.tasks[task.task_id] = task
        world.offer(task, Changes())
        if number:
            del world.tasks[task.task_id]
    (heap,) = world.heaps[QUEUE].values()
    assert len(heap) <= SMALL_HEAP
    assert heap[0][2] == f"task_{0:026d}"


def test_obsolete_timers_do_not_accumulate() -> None:
    world = World()
    held = _task(0, "claimed", claim_id="clm_x", lease_expires_at=7)
    world.tasks[held.task_id] = held
    world.at(7, "lease", held.task_id)
    for number in range(20 * SMALL_HEAP):
        world.at(100 + number, "lease", f"task_{number + 1:026d}")
    assert len(world.timers) <= SMALL_HEAP
    assert (7, "lease", held.task_id) in world.timers


def test_ended_tasks_leave_memory_after_a_minute_of_ledger_time() -> None:
    desk = Desk()
    agent, task = desk.agent("ada"), desk.task()
    desk.complete(desk.hold(task, agent))
    ended = desk.world.tasks[task].ended_at
    desk.clock.advance(60 - 1)
    desk.task()
    assert task in desk.world.tasks
    desk.clock.advance(1.001)
    desk.task()
    assert desk.world.timestamp >= ended + 60 * SECOND
    assert task not in desk.world.tasks
    assert task not in desk.world.misses
    assert not desk.world.tombstones


def test_finished_work_is_not_kept_in_memory() -> None:
    """After any amount of work only waiting tasks and bounded lists remain."""
    desk = Desk()
    one, other = desk.agent("ada"), desk.agent("bob")
    sizes = []
    for _ in range(3):
        for _ in range(500):
            task = desk.task(deadline_seconds=600)
            claim_id = desk.hold(task, one, 60)
            desk.claim(task, other)
            desk.complete(claim_id)
        desk.clock.advance(61)
        desk.task()
        world = desk.world
        for left in (world.claims, world.expired, world.misses, world.dependents, world.tombstones):
            assert not left
        entries = sum(len(heap) for sets in world.heaps.values() for heap in sets.values())
        assert max(entries, len(world.timers)) <= 2 * SMALL_HEAP
        sizes.append(len(world.tasks))
    assert sizes == [1, 2, 3]


def test_a_retried_task_stays_in_memory_after_its_last_attempt_ended() -> None:
    desk = Desk()
    agent, task = desk.agent("ada"), desk.task(max_attempts=2)
    desk.do(FailClaim(desk.hold(task, agent), "error"))
    desk.tick(16 * 60)
    desk.task()
    assert desk.state(task) == "available"


def test_the_idempotency_window_is_a_day_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    world, day = World(), 24 * 3600 * SECOND
    for number in range(5):
        world.remember(f"{number:032x}", "", number, number)
    assert not world.keys_dropped
    world.remember("f" * 32, "", 9, day + 2)
    assert world.keys_dropped
    assert list(world.done) == [f"{number:032x}" for number in (2, 3, 4)] + ["f" * 32]
    monkeypatch.setattr(worlds, "IDEMPOTENCY_LIMIT", 2)
    world.remember("e" * 32, "", 10, day + 3)
    assert list(world.done) == ["f" * 32, "e" * 32]
