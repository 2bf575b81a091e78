"""The budget of a cycle: what each part of the server costs for one create, one claim and one complete.

32 connections with everything on (see `crew`). All figures are processor time of the server process, so waiting for the
disk is not included, and the parts add up to the whole: stopwatches run per unit of work, never per request, and `HTTP`
is three times the cost of the bare echo behind the same host. The same load on a server without stopwatches, in
alternating slices, shows how much they distort.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench import row, served
from bench.crew import Crew, echo_lanes, follower
from bench.turns import Turns, alternate

ROUNDS = 1
CONNECTIONS = 32
REQUESTS = 3
SECONDS = 0.5
# Limits: what stopwatches may add to a cycle, what may be spent outside the unit of work, what the client may cost.
AIM_DISTORTION, AIM_BEYOND, AIM_CLIENT = 1.05, 170, 150


def main(quick: bool) -> None:
    """Measure and print everything; `quick` runs fewer slices."""
    parts, distortion = measure(2 if quick else 12)
    for part, microseconds in parts.items():
        row(f"a cycle: {part}", microseconds, unit="us", least=True, aim=_AIMS.get(part))
    row("a cycle with stopwatches over one without", distortion, unit="", least=True, aim=AIM_DISTORTION)


_TOTAL, _BEYOND, _CLIENT = "processor", "beyond the unit (the first two)", "the client's processor"
_AIMS = {_BEYOND: AIM_BEYOND, _CLIENT: AIM_CLIENT}


def measure(slices: int) -> tuple[dict[str, float], float]:
    """Microseconds of a cycle by part, where those up to the total add up to it; and the distortion by stopwatches."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:

        def working(part: str, watched: bool) -> Turns:
            (folder := Path(name) / part).mkdir()
            server = stack.enter_context(served.redkey(folder, watched="parts" if watched else ""))
            stack.enter_context(follower(server))
            return Turns(server, stack.enter_context(Crew(server).lanes(CONNECTIONS, lambda agent: agent.cycle)))

        watched, plain = working("watched", True), working("plain", False)
        echo = stack.enter_context(served.echo(Path(name)))
        echoed = Turns(echo, stack.enter_context(echo_lanes(echo, CONNECTIONS)))
        alternate({"watched": watched, "plain": plain, "echoed": echoed}, slices, SECONDS)
    cost, a_cycle = watched.spent, watched.microseconds
    http = echoed.microseconds(echoed.spent.process) * REQUESTS
    parts = {
        "HTTP, as the bare echo": http,
        "authenticate, decode, handle, answer": a_cycle(cost.outside + cost.answer) - http,
        "decide": a_cycle(cost.decide),
        "finish the unit": a_cycle(cost.finish),
        "commit": a_cycle(cost.commit),
        "open and close the unit": a_cycle(cost.unit - cost.decide - cost.finish - cost.commit),
        "other threads": a_cycle(cost.threads),
    }
    plainly = {"processor, without stopwatches": plain.microseconds(plain.spent.process)}
    parts |= {_TOTAL: sum(parts.values()), **plainly, _BEYOND: a_cycle(cost.outside + cost.answer)}
    parts["from the commit to the last result"] = a_cycle(cost.answer)
    parts[_CLIENT] = plain.client_seconds / plain.works * 1e6
    return parts, median(one / other for one, other in zip(watched.each, plain.each, strict=True))
