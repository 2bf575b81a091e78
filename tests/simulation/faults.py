"""What goes wrong in a run, drawn from its seed: how often, and for how long. Every run draws its own rates."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from redkey.stores.memory.network import Weather


@dataclass
class Faults:
    """Rates are chances in one of what they are about; seconds are drawn up to what is said."""

    lost: float = 0
    duplicated: float = 0
    delay_seconds: float = 0.01
    busy: float = 0
    commit_failed: float = 0
    crash_before_commit: float = 0
    crash_after_commit: float = 0
    down_seconds: float = 0
    # How often, in seconds, a server's wall clock jumps, and how far.
    clock_jump_every: float = 0
    clock_jump_seconds: float = 0
    # A worker that stops in the middle of its work, as under SIGSTOP, and goes on later.
    paused: float = 0
    pause_seconds: float = 0
    # A worker that never comes back to what it holds.
    forgetful: float = 0


def draw_weather(random: Random) -> Weather:
    """What goes wrong on the network of one run."""

    def maybe(highest: float) -> float:
        return random.uniform(0, highest) if random.random() < 0.6 else 0

    return Weather(
        delay_seconds=random.choice([0.002, 0.02, 0.3]),
        notice_seconds=random.choice([0, 0, 1]),
        lost_begin=maybe(0.05),
        lost_commit=maybe(0.15),
        done_commit=maybe(0.15),
        late_commit=maybe(0.1),
        late_seconds=random.choice([0.1, 2]),
        lost_resolve=maybe(0.5),
    )


def draw(random: Random) -> Faults:
    """The faults of one run: a swarm, in which most runs have some and few have all."""

    def maybe(highest: float) -> float:
        return random.uniform(0, highest) if random.random() < 0.5 else 0

    return Faults(
        lost=maybe(0.2),
        duplicated=maybe(0.3),
        delay_seconds=random.choice([0.001, 0.05, 2.0]),
        busy=maybe(0.3),
        commit_failed=maybe(0.1),
        crash_before_commit=maybe(0.03),
        crash_after_commit=maybe(0.03),
        down_seconds=random.choice([0.5, 5, 60]),
        clock_jump_every=random.choice([0, 0, 20, 100]),
        clock_jump_seconds=random.choice([1, 60, 3600]),
        paused=maybe(0.2),
        pause_seconds=random.choice([10, 100]),
        forgetful=maybe(0.15),
    )
