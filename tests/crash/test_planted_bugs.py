"""A checker never seen to fail proves nothing: each bug planted here is found by the proof that stands beside it.

The proofs are the same code that the other tests of this folder run on the store as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.crash import plants
from tests.crash.judge import Judge, Wrong
from tests.crash.power_cut import Examiner
from tests.crash.proofs import SYNCS, kill_at, strike_calls
from tests.crash.recording import History, record_restarts, record_run, spread
from tests.crash.tracing import KILL, Call, Strike, Tracer

EIO, ENOSPC = Strike("error=EIO"), Strike("error=ENOSPC")
# Of the moments of a run one in so many will do: what is not synced stays so for a while.
SHARES = 6
# Which proof finds which bug.
CAUGHT = {
    "acknowledge_before_commit": "kill",
    "sequence_gap": "kill",
    "clock_going_back": "kill",
    "hash_over_other_bytes": "kill",
    "checkpoint_published_before_commit": "kill",
    "marks_not_kept": "kill",
    "synchronous_off": "power cut",
    "synchronous_normal": "power cut",
    "content_not_synced": "power cut",
    "content_folder_not_synced": "power cut",
    "upload_not_synced": "power cut",
    "data_directory_not_synced": "power cut",
    "checkpoint_file_not_synced": "power cut",
    "log_cut_not_synced": "power cut",
    "log_trusted_at_opening": "power cut after a failed fsync and a restart",
    "failed_fsync_tried_again": "failed fsync",
    "failed_commit_tried_again": "failed fsync",
    "full_disk_passed_over": "full disk",
}


class Proofs:
    """The proofs, each with the tracer it needs, which is started when it is first asked for."""

    def __init__(self, recorded: History, judge: Judge, stack: ExitStack) -> None:
        self._recorded, self._judge, self._stack = recorded, judge, stack
        self._tracers: dict[str, Tracer] = {}

    def prove(self, proof: str, plant: str, scratch: Path) -> None:
        """Wrong when the proof has found the bug."""
        if proof == "kill":
            kill_at(self._tracer(KILL), spread(self._recorded.points(), 60), self._judge, scratch, plant)
        elif proof == "power cut":
            history = record_run(plant)
            Examiner(history, self._judge, scratch, 3, SHARES, keep_wrong=False).examine(3000)
        elif proof.startswith("power cut after"):
            for history in record_restarts(EIO, spread(self._recorded.points(_syncs), 24), plant):
                Examiner(history, self._judge, scratch, keep_wrong=False).examine(40, systematic=False)
        else:
            strike, wanted = (EIO, _syncs) if proof == "failed fsync" else (ENOSPC, _writes)
            points = self._recorded.points(wanted)
            strike_calls(self._tracer(strike), self._recorded, points, self._judge, scratch, plant)

    def _tracer(self, strike: Strike) -> Tracer:
        if strike.what not in self._tracers:
            self._tracers[strike.what] = self._stack.enter_context(Tracer(strike))
        return self._tracers[strike.what]


def _syncs(call: Call) -> bool:
    return call.name in SYNCS


def _writes(call: Call) -> bool:
    return call.name == "write"


@pytest.fixture(scope="module")
def proofs(recorded: History, judge: Judge) -> Iterator[Proofs]:
    with ExitStack() as stack:
        yield Proofs(recorded, judge, stack)


@pytest.mark.parametrize("plant", CAUGHT)
def test_a_planted_bug_is_found(proofs: Proofs, scratch: Path, tell: Callable[[str], None], plant: str) -> None:
    with pytest.raises(Wrong) as found:
        proofs.prove(CAUGHT[plant], plant, scratch)
    tell(f"planted bug {plant}: found by {CAUGHT[plant]}: {str(found.value).splitlines()[0]}")


def test_every_bug_that_can_be_planted_is_in_the_table() -> None:
    bugs = {
        name
        for name, value in vars(plants).items()
        if callable(value) and getattr(value, "__module__", "") == plants.__name__ and not name.startswith("_")
    }
    assert bugs - {"EarlyStore", "plant"} == set(CAUGHT)
