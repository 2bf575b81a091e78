"""Graphs: a plan of 10 levels of 100 no-op tasks, each level after the one before, beside engines that run such graphs.

RedKey runs the plan over HTTP with 32 workers, durable, and with every edge spelt out. The share is how many times
longer the peer takes.
"""

from __future__ import annotations

from bench import row, say
from bench.peers import GRAPHS, REDKEY_GRAPH, Missing, Peer

ROUNDS = 2


def main(quick: bool) -> None:
    """One round; `quick` takes RedKey and Dask on 3 levels."""
    levels = 3 if quick else 10
    ours = _seconds(REDKEY_GRAPH, levels)
    if ours is None:
        return
    row(f"RedKey, {levels * 100:,} tasks", ours, unit="s", aim=2.0, least=True)
    for peer in GRAPHS if not quick else GRAPHS[-1:]:
        theirs = _seconds(peer, levels)
        if theirs is not None:
            row(f"{peer.name}, times RedKey's", theirs, unit="s", beside=ours, share_aim=peer.aim)


def _seconds(peer: Peer, levels: int) -> float | None:
    try:
        peer.python()
        with peer.serve() as place:
            seconds: float = peer.run(place, levels=levels, width=100)["seconds"]
            say(f"{peer.name}: {peer.durability}.")
            return seconds
    except Missing as missing:
        say(f"{peer.name} is missing here: {missing}")
        return None
