"""Planted bugs: each a small wrong turn in the real code, of the kind that queues and ledgers are known to have.

A checker never seen to fail is no evidence. Every bug here must be found by simulation within a bounded number of
seeds; `python -m tests.bugzoo` prints how many each one took.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from redkey.commands import claims, due, holds, tasks
from redkey.commands.decision import Decision
from redkey.ledger.clock import LedgerClock
from redkey.reducers import attempt as attempt_reducer
from redkey.reducers import claim as claim_reducer
from redkey.reducers import task as task_reducer
from redkey.reducers import task_creation
from redkey.reducers.machine import machine
from redkey.reducers.world import World
from redkey.services import commit_path, counting, unit_of_work, worlds
from redkey.services.coordinator import Coordinator
from redkey.services.unit_of_work import TopicWork

Patch = pytest.MonkeyPatch
Bug = Callable[[Patch], None]
BUGS: dict[str, Bug] = {}


def bug(plant: Bug) -> Bug:
    BUGS[plant.__name__] = plant
    return plant


def _rebind(patch: Patch, **guards: Any) -> None:
    """Put other guards into the fold of attempts."""
    bound = machine().bind({**attempt_reducer._GUARDS, **guards})
    patch.setattr(attempt_reducer, "_moves", lambda: bound)


@bug
def no_fence_on_complete(patch: Patch) -> None:
    """A stale holder may complete: neither the decision nor the fold looks whose claim it is."""
    real = holds.holding

    def holding(world: World, past: Any, caller: Any, claim_id: str, now: int) -> Any:
        gone = past.claim(claim_id) if claim_id not in world.claims else None
        task = world.tasks.get(gone.task_id) if gone is not None else None
        if task is not None and task.state in ("claimed", "working"):
            return holds.Hold(task, world.agents[gone.agent_id], [])
        return real(world, past, caller, claim_id, now)

    patch.setattr(holds, "holding", holding)
    _rebind(patch, outputs_ready=lambda task, payload: None)


@bug
def a_miss_names_the_wrong_winner(patch: Patch) -> None:
    """The loser is told of the claim before the one that beat it."""
    real = due.outcome

    def outcome(world: World, pending: Any) -> Any:
        draft = real(world, pending)
        if draft.type == "task.claim_missed":
            others = [agent for agent in world.agents if agent != draft.payload.winning_agent_id]
            draft.payload = msgspec.structs.replace(draft.payload, winning_agent_id=others[0])
        return draft

    patch.setattr(due, "outcome", outcome)


@bug
def expiry_by_the_wall_clock(patch: Patch) -> None:
    """A step of the wall clock ends leases."""

    def after(self: Any, timestamp: int) -> int:
        return max(self._clock.wall(), timestamp + 1)

    patch.setattr(LedgerClock, "after", after)


@bug
def answered_before_the_commit(patch: Patch) -> None:
    """Callers hear of success while the unit may still fail."""

    def commit(self: Coordinator, batch: Any) -> None:
        runs: list[Any] = []
        try:
            with self._store.together(wait=False):
                for topic, submissions in commit_path._by_topic(batch).items():
                    runs.append(commit_path.UnitRun(submissions, self._worlds.lend(topic)))
                    self._run(runs[-1])
                self._answer(runs)
        except commit_path.WriterBusy:
            self._arrived.put_back(batch)
            raise
        except Exception as cause:
            self._units_failed(batch, runs, cause)

    patch.setattr(Coordinator, "_commit", commit)


@bug
def keys_are_not_scoped(patch: Patch) -> None:
    """Two requests of different callers under keys that look alike are taken for one."""
    real = TopicWork.run

    def run(self: TopicWork, submission: Any) -> Any:
        if submission.idem:
            submission.idem, submission.body = submission.idem[:2] * 16, "0" * 16
        return real(self, submission)

    patch.setattr(TopicWork, "run", run)


@bug
def keys_are_forgotten(patch: Patch) -> None:
    """A retry is done a second time."""
    patch.setattr(World, "remember", lambda self, idem, body, sequence, timestamp: None)


@bug
def keys_are_forgotten_in_a_restart(patch: Patch) -> None:
    """A world that is loaded from rows does not know which requests it has recorded."""
    real = worlds.load_world

    def load(*arguments: Any) -> World:
        world = real(*arguments)
        world.done.clear()
        return world

    patch.setattr(worlds, "load_world", load)


@bug
def an_ended_task_can_be_cancelled(patch: Patch) -> None:
    """The terminal check is missing, in the decision and in the fold."""
    patch.setattr(tasks, "_open_task", tasks.any_task)
    moves = {state: dict(row) for state, row in attempt_reducer._moves().items()}
    for state in ("completed", "failed"):
        moves[state]["task.cancelled"] = (("cancelled", None),)
    patch.setattr(attempt_reducer, "_moves", lambda: moves)


@bug
def a_held_task_is_offered_again(patch: Patch) -> None:
    """Whoever asks while somebody holds the task takes it over."""
    patch.setattr(
        claim_reducer, "open_to", lambda task, now: not task.reserved and task.state in ("available", "claimed")
    )
    patch.setattr(claims, "open_to", lambda task, now: True)
    moves = {state: dict(row) for state, row in attempt_reducer._moves().items()}
    moves["claimed"]["task.claimed"] = (("claimed", None),)
    patch.setattr(attempt_reducer, "_moves", lambda: moves)
    real = due.outcome

    def outcome(world: World, pending: Any) -> Any:
        task = world.tasks.get(pending.task_id)
        if task is not None and task.reserved == pending.claim_id and task.state == "claimed":
            return due._claimed(pending, task)
        return real(world, pending)

    patch.setattr(due, "outcome", outcome)


@bug
def dependents_are_lost(patch: Patch) -> None:
    """What waits for a task is not told that it is done."""
    patch.setattr(World, "release_dependents", lambda self, task, cause, changes: None)


@bug
def dependents_are_lost_in_a_restart(patch: Patch) -> None:
    """A world that is loaded from rows does not know who waits for whom."""
    real = worlds.load_world

    def load(*arguments: Any) -> World:
        world = real(*arguments)
        world.dependents.clear()
        return world

    patch.setattr(worlds, "load_world", load)


@bug
def a_task_opens_too_early(patch: Patch) -> None:
    """The first of several dependencies opens the task."""
    real = World.release_dependents

    def release(self: World, task: Any, cause: str, changes: Any) -> None:
        for waiting_id in self.dependents.get(task.task_id, ()):
            waiting = self.tasks.get(waiting_id)
            if waiting is not None and task.task_id in waiting.waits_for:
                waiting.waits_for = (task.task_id,)
        real(self, task, cause, changes)

    patch.setattr(World, "release_dependents", release)


@bug
def leases_never_expire(patch: Patch) -> None:
    """A worker that is gone keeps its task for good."""
    real = task_reducer._hold_until
    patch.setattr(task_reducer, "_hold_until", lambda world, task, when: real(world, task, 0))


@bug
def a_world_outlives_a_failed_commit(patch: Patch) -> None:
    """What was folded in a unit that failed is taken for recorded."""
    patch.setattr(commit_path.Worlds, "drop", lambda self, loan: self.take_back(loan, None))


@bug
def others_are_not_read(patch: Patch) -> None:
    """A process decides by its own world and does not look what another has written."""

    def blind(reader: Any, topic: str, world: World, news: Any) -> None:
        world.sequence = reader.head(topic).sequence

    patch.setattr(worlds, "_catch_up", blind)


@bug
def a_row_is_not_written(patch: Patch) -> None:
    """The rows of agents lag behind their records."""
    real = unit_of_work.take_rows

    def take(world: World, changes: Any) -> Any:
        rows = real(world, changes)
        return [row for row in rows if row.kind != "agent" or world.sequence % 7]

    patch.setattr(unit_of_work, "take_rows", take)


@bug
def the_meter_forgets_claims(patch: Patch) -> None:
    """Some events are not counted."""

    class Forgetful(counting.Meter):
        def note(self, prices: Any, wire: Any, *rest: Any) -> None:
            if wire.type != "task.claim_missed":
                super().note(prices, wire, *rest)

    patch.setattr(counting, "Meter", Forgetful)


@bug
def a_late_holder_takes_back_what_another_has(patch: Patch) -> None:
    """Who lost a task by expiry goes on although another has claimed it since."""
    real = attempt_reducer._forget_expired

    def keep(task: Any) -> None:
        kept = task.expired_claim_id, task.expired_agent_id, task.expired_state
        real(task)
        if kept[0] and kept[0] != task.claim_id:
            task.expired_claim_id, task.expired_agent_id, task.expired_state = kept

    patch.setattr(attempt_reducer, "_forget_expired", keep)
    _rebind(patch, last_holder=lambda task, payload: None)
    moves = {state: dict(row) for state, row in attempt_reducer._moves().items()}
    for state in ("claimed", "working"):
        moves[state]["task.lease_extended"] = (("same", None),)
    patch.setattr(attempt_reducer, "_moves", lambda: moves)


@bug
def a_retry_reports_a_new_attempt_twice(patch: Patch) -> None:
    """A failure is followed by two further attempts."""
    real = task_creation.created

    def created(world: World, e: Any, p: Any) -> Any:
        void = real(world, e, p)
        if void is None and e.attempt > 1:
            world.tasks[e.subject].attempt += 1
        return void

    patch.setattr(task_creation, "created", created)


@bug
def a_loser_is_told_what_was_true_long_ago(patch: Patch) -> None:
    """Once told of a winner, an agent hears of it for ever, whoever holds the task now."""
    real = claims.claim_task

    def claim_task(world: World, command: Any, caller: Any, now: int, ids: Any, past: Any) -> Decision:
        told = world.misses.get(command.task_id, {}).get(command.agent_id)
        if told is not None and told.winning_claim_id:
            return Decision(repeat=told.sequence)
        return real(world, command, caller, now, ids, past)

    patch.setattr(claims, "claim_task", claim_task)


@bug
def stream_numbers_are_given_twice(patch: Patch) -> None:
    """Two wires of a stream have the same number."""
    real = World.next_seq
    patch.setattr(World, "next_seq", lambda self, stream_id: max(1, real(self, stream_id) - (self.sequence % 50 == 0)))
