"""Graphs: a plan of 10 levels of 100 no-op tasks, each level after the one before, beside engines that run such graphs.

RedKey runs the plan over HTTP with 32 workers, durable, and with every edge listed. It is measured in alternation with
each peer, each time on a new server; the share is how many times longer the peer takes. The first peer is RedKey
itself: any difference of its share from 1 is noise.
"""

from __future__ import annotations

from bench import probe_disk, row, say
from bench.peers import GRAPHS, REDKEY_GRAPH, Missing, Peer

ROUNDS = 2


def main(quick: bool) -> None:
    """One round; `quick` takes RedKey and Dask on 3 levels."""
    levels = 3 if quick else 10
    for peer in (REDKEY_GRAPH, *(GRAPHS if not quick else GRAPHS[-1:])):
        probe_disk()
        ours = _seconds(REDKEY_GRAPH, levels)
        theirs = _seconds(peer, levels)
        if ours is None or theirs is None:
            continue
        if peer is REDKEY_GRAPH:
            text = f"RedKey, {levels * 100:,} tasks, beside itself (A/A)"
            row(text, theirs, unit="s", aim=2.0, least=True, beside=ours)
        else:
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
