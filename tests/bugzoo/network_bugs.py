"""Planted bugs of units that run on writer threads, over a network: each is found by simulation on the memory store's
network mode."""

from __future__ import annotations

from typing import Any

from redkey.errors import CommitInDoubt
from redkey.services.coordinator import Coordinator
from redkey.services.turns import Turns
from redkey.services.worlds import Loan, Worlds
from redkey.services.writer_threads import WriterThreads
from redkey.stores.memory.network import NetworkStore
from redkey.stores.memory.unit import MemoryUnit
from tests.bugzoo.bugs import Bug, Patch

NETWORK_BUGS: dict[str, Bug] = {}


def bug(plant: Bug) -> Bug:
    NETWORK_BUGS[plant.__name__] = plant
    return plant


@bug
def a_read_ahead_of_its_commit(patch: Patch) -> None:
    """Questions are answered by the world that a unit is changing."""
    real = Worlds.lend
    lent: dict[tuple[int, str], Loan] = {}

    def lend(self: Worlds, topic: str) -> Loan:
        lent[id(self), topic] = loan = real(self, topic)
        return loan

    def peek_beside(self: Worlds, topic: str, head: int) -> Any:
        loan = lent.get((id(self), topic))
        return loan.world if loan is not None and loan.world is not None else self.peek(topic, head)

    patch.setattr(Worlds, "lend", lend)
    patch.setattr(Worlds, "peek_beside", peek_beside)


@bug
def two_units_of_one_topic_share_a_world(patch: Patch) -> None:
    """A second unit of a topic begins while the first one runs, and has the same world."""
    real = Turns.take_of

    def lend(self: Worlds, topic: str) -> Loan:
        return Loan(topic, self._loaded.get(topic), self._loaded_at.get(topic, 0))

    patch.setattr(Turns, "take_of", lambda self, busy: real(self, ()))
    patch.setattr(Worlds, "lend", lend)


@bug
def an_answer_for_a_unit_that_failed(patch: Patch) -> None:
    """A commit whose answer was lost is taken for done."""
    real = Coordinator._unit_ended

    def ended(self: Coordinator, writers: WriterThreads, run: Any, cause: BaseException | None) -> None:
        if isinstance(cause, CommitInDoubt):
            writers.busy.discard(run.topic)
            cause = None
        real(self, writers, run, cause)

    patch.setattr(Coordinator, "_unit_ended", ended)


@bug
def a_unit_in_doubt_is_run_again(patch: Patch) -> None:
    """A commit whose answer was lost is taken for failed, and its requests without a key are recorded twice."""
    real = Coordinator._unit_ended

    def ended(self: Coordinator, writers: WriterThreads, run: Any, cause: BaseException | None) -> None:
        if isinstance(cause, CommitInDoubt):
            writers.busy.discard(run.topic)
            self._unit_resolved(run, committed=False)
            self._begin_draining()
        else:
            real(self, writers, run, cause)

    patch.setattr(Coordinator, "_unit_ended", ended)


@bug
def a_lost_wake_up(patch: Patch) -> None:
    """What other servers commit while a workspace is busy is not looked at afterwards."""
    patch.setattr(Coordinator, "_look_again", lambda self, topic: None)


@bug
def a_doubt_resolved_before_the_lock(patch: Patch) -> None:
    """The ledger is looked at while the database may still commit."""

    def resolve(self: NetworkStore, doubt: Any) -> str:
        return "committed" if doubt.unit in self._network.committed else "failed"

    patch.setattr(NetworkStore, "resolve", resolve)


@bug
def a_notice_that_is_dropped(patch: Patch) -> None:
    """Commits of other servers are not announced."""
    real = NetworkStore.learn
    patch.setattr(
        NetworkStore, "learn", lambda self, topic, head, own=False: real(self, topic, head, own=own) if own else None
    )


@bug
def a_checkpoint_over_records_that_are_not_there(patch: Patch) -> None:
    """A checkpoint is published before the unit that it is of is committed."""
    real = MemoryUnit.put_checkpoint

    def early(self: MemoryUnit, topic: str, size: int, note: bytes) -> None:
        real(self, topic, size, note)
        self._disk.topics[topic].checkpoints[size] = note

    patch.setattr(MemoryUnit, "put_checkpoint", early)
