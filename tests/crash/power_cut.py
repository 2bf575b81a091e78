"""Power cuts: every moment of a recorded history, and many of the disks that each may leave behind, judged.

`python -m tests.crash.power_cut KEPT` judges again what a failed test has kept.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import msgspec

from tests.crash.append_run import DATA
from tests.crash.disk import Disk, Drawn, Image, Only, Recipe
from tests.crash.judge import Ack, Judge, Wrong
from tests.crash.recording import History

_STATE, _ACKS = "state", "acks.json"
# Every so many states the store also has to take the next unit.
_GO_ON = 8
# Draws of a round at each moment.
_DRAWS = 4
# So many rounds of draws in which not one state was new: there are no more.
_FRUITLESS = 20


class Examiner:
    """Judges the disks that a power cut may leave of one history, in one of several equal shares of its moments."""

    def __init__(
        self,
        history: History,
        judge: Judge,
        scratch: Path,
        share: int = 0,
        shares: int = 1,
        *,
        keep_wrong: bool = True,
    ) -> None:
        self._history, self._judge, self._scratch = history, judge, scratch
        self._share, self._shares, self._keep_wrong = share, shares, keep_wrong
        self._seen: set[tuple[bytes, int]] = set()
        self.digests: set[bytes] = set()

    def examine(self, states: int, *, systematic: bool = True) -> int:
        """Judge every moment as it is when all is lost (or in all the systematic ways), then drawn states until there
        are so many; how many there were: fewer than `states` when the history has not so many.
        """
        fruitless = round_number = 0
        while fruitless < _FRUITLESS and (round_number == 0 or len(self.digests) < states):
            before = len(self.digests)
            for moment, disk in self._moments():
                if round_number == 0:
                    recipes = _recipes(disk) if systematic else iter([("nothing kept", Only(()))])
                else:
                    recipes = _draws(f"{self._history.name}:{moment}:{round_number}")
                for name, recipe in recipes:
                    self._look(disk, f"moment {moment}, {name}", recipe)
                if round_number and len(self.digests) >= states:
                    break
            round_number += 1
            fruitless = 0 if len(self.digests) > before else fruitless + 1
        return len(self.digests)

    def _moments(self) -> Iterator[tuple[int, Disk]]:
        """The moments of this share; those of the last run only, when there were several."""
        disk = Disk(self._history.base)
        *earlier, last = self._history.runs
        for run in earlier:
            for _ in disk.follow(run):
                pass
        for moment in disk.follow(last):
            if moment % self._shares == self._share:
                yield moment, disk

    def _look(self, disk: Disk, name: str, recipe: Recipe) -> None:
        image = disk.image(recipe)
        acked = disk.acks[-1].unit if disk.acks else 0
        if (image.digest, acked) in self._seen:
            return
        self._seen.add((image.digest, acked))
        self.digests.add(image.digest)
        place = self._scratch / "state"
        place.mkdir()
        image.write(place)
        try:
            self._judge.judge(place / DATA, disk.acks, go_on=len(self._seen) % _GO_ON == 0)
        except Wrong as wrong:
            text = f"{wrong}\n  after {self._history.name}, {name}"
            if self._keep_wrong:
                text += f"; again: python -m tests.crash.power_cut {keep(image, disk.acks)}"
            raise Wrong(text) from wrong
        finally:
            shutil.rmtree(place)


def _recipes(disk: Disk) -> Iterator[tuple[str, Recipe]]:
    """The systematic ways: nothing, all, each change alone, all but it, all before it."""
    changes = disk.open_changes()
    yield "nothing kept", Only(())
    yield "all kept", Only(changes)
    for number, change in enumerate(changes):
        yield f"only {change} kept", Only([change])
        yield f"only {change} lost", Only(one for one in changes if one != change)
        yield f"all up to {change} kept", Only(changes[:number])


def _draws(seed: str) -> Iterator[tuple[str, Recipe]]:
    for number in range(_DRAWS):
        yield f"draw {seed}:{number}", Drawn(Random(f"{seed}:{number}"))


def keep(image: Image, acks: Sequence[Ack]) -> Path:
    """Put a state where it can be judged again."""
    kept = Path(mkdtemp(prefix="redkey-power-cut-"))
    (kept / _STATE).mkdir()
    image.write(kept / _STATE)
    (kept / _ACKS).write_bytes(msgspec.json.encode(list(acks)))
    return kept


def judge_kept(kept: Path) -> int:
    """Judge a kept state; it is not changed, so that this can be done again."""
    acks = msgspec.json.decode((kept / _ACKS).read_bytes(), type=list[Ack])
    copy = Path(mkdtemp(prefix="redkey-power-cut-again-"))
    try:
        shutil.copytree(kept / _STATE, copy / _STATE)
        return Judge().judge(copy / _STATE / DATA, acks)
    finally:
        shutil.rmtree(copy)


if __name__ == "__main__":
    print(f"right: {judge_kept(Path(sys.argv[1]))} units")
