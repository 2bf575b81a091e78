"""Queues: RedKey beside common alternatives, with the same work and the same number of workers.

Tasks of 300 bytes are created, claimed and completed, one operation per request or call, by 1, 8, 32 and 64 workers. A
peer runs with the durability that its makers recommend, which the figures name; RedKey syncs before every answer and
has everything on (see `crew`). Load and server are different processes. RedKey and a peer are measured in alternation;
the share is RedKey's rate over the peer's in the same turn. The first peer is another RedKey server: any difference of
its share from 1 is noise.
"""

from __future__ import annotations

from bench import point, probe_disk, row, say
from bench.peers import QUEUES, REDKEY, REDKEY_AGAIN, REDKEY_BATCH, REDKEY_SDK, Missing, Peer
from bench.peers.servers import Place

WORKERS = (1, 8, 32, 64)
# The size with a target gets more turns.
AIMED, TURNS = 32, 3
SECONDS = 0.8
AIM_CYCLES, AIM_BATCHED = 3000, 5.0
BATCHED = "beanstalkd, fsync each write"


def main(quick: bool) -> None:
    """One round of every peer; `quick` uses only 32 workers, and peers that are quick to set up."""
    sizes = (AIMED,) if quick else WORKERS
    peers = [one for one in (REDKEY_AGAIN, REDKEY_SDK, *QUEUES) if not quick or not one.packages]
    with REDKEY.serve() as redkey:
        for peer in peers:
            try:
                _in_turns(peer, redkey, (AIMED,) if peer is REDKEY_SDK else sizes, quick)
            except Missing as missing:
                say(f"{peer.name} is missing here: {missing}")
            else:
                say(f"{peer.name}: {peer.durability}.")


def _in_turns(peer: Peer, redkey: Place, sizes: tuple[int, ...], quick: bool) -> None:
    """RedKey, then the peer, then RedKey again, each on one server for all of its turns."""
    peer.python()
    with peer.serve() as place:
        for workers in sizes:
            for turn in range(TURNS if workers == AIMED and not quick else 1):
                probe_disk()
                pair = [(REDKEY, redkey), (peer, place)]
                rates = {one.name: rate_of(one, at, workers, quick) for one, at in (pair[::-1] if turn % 2 else pair)}
                _tell(peer, workers, rates)
                if peer.name == BATCHED and workers == AIMED:
                    rate, theirs = rate_of(REDKEY_BATCH, redkey, workers, quick), rates[peer.name]
                    row(f"RedKey, 50 a request, over {peer.name}", rate, beside=theirs, share_aim=AIM_BATCHED)


def rate_of(peer: Peer, place: Place, workers: int, quick: bool) -> float:
    """Cycles per second in one turn."""
    seconds = SECONDS / 3 if quick else SECONDS
    said = peer.run(place, workers=workers, tasks=max(workers, int(peer.rate * seconds)), seconds=seconds)
    rate: float = said["cycles"] / said["seconds"]
    if peer is not REDKEY_AGAIN:
        point("throughput", peer.name, workers, rate)
    if peer is not REDKEY_AGAIN and workers == AIMED:
        for part, milliseconds in said.get("quantiles", {}).items():
            point("latency", peer.name, float(part), milliseconds)
    print(f"    {peer.name}, {workers} workers: {rate:,.0f} cycles/s", flush=True)
    return rate


def _tell(peer: Peer, workers: int, rates: dict[str, float]) -> None:
    ours, theirs = rates[REDKEY.name], rates[peer.name]
    aimed = workers == AIMED
    if peer is REDKEY_AGAIN:
        row(f"RedKey, {workers} workers, over itself (A/A)", ours, beside=theirs, aim=AIM_CYCLES if aimed else None)
    elif peer is REDKEY_SDK:
        row(f"RedKey by its own SDK, {workers} workers, over the bare client", theirs, beside=ours)
    else:
        row(f"RedKey over {peer.name}, {workers} workers", ours, beside=theirs, share_aim=peer.aim if aimed else None)
