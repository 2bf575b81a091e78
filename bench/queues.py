"""Queues: RedKey beside what people would use instead, on the same work with the same number of workers.

Tasks of 300 bytes are created, claimed and completed, one operation a request or call, by 1, 8, 32 and 64 workers. A
peer runs with the durability its makers recommend, which is written beside it; RedKey syncs before every answer. Load
comes from another process than the server. The share is RedKey's rate over the peer's.
"""

from __future__ import annotations

from bench import point, row, say
from bench.peers import QUEUES, REDKEY, REDKEY_BATCH, REDKEY_SDK, Missing, Peer

WORKERS = (1, 8, 32, 64)
SECONDS = 0.8
BATCHED = "beanstalkd, fsync each write"


def main(quick: bool) -> None:
    """One round of every peer; `quick` takes 32 workers only, and the peers that are quick to set up."""
    sizes = (32,) if quick else WORKERS
    ours = _measure(REDKEY, sizes, quick)
    for workers, rate in ours.items():
        row(f"RedKey, {workers} workers", rate, aim=3000 if workers == 32 else None)
    sdk = _measure(REDKEY_SDK, (32,), quick)
    if 32 in sdk:
        row("RedKey by its own SDK, 32 workers", sdk[32], beside=ours.get(32))
    batched = _measure(REDKEY_BATCH, (32,), quick)
    for peer in QUEUES if not quick else [one for one in QUEUES if not one.packages]:
        theirs = _measure(peer, sizes, quick)
        for workers, rate in theirs.items():
            aim = peer.aim if workers == 32 else None
            if workers in ours and rate:
                row(f"RedKey over {peer.name}, {workers} workers", ours[workers], beside=rate, share_aim=aim)
        if peer.name == BATCHED and 32 in theirs and 32 in batched:
            row("RedKey, 50 a request, over " + peer.name, batched[32], beside=theirs[32], share_aim=5.0)


def _measure(peer: Peer, sizes: tuple[int, ...], quick: bool) -> dict[int, float]:
    """Cycles a second by the number of workers, on one server for all of them; what is missing is said."""
    found: dict[int, float] = {}
    try:
        peer.python()
        with peer.serve() as place:
            for workers in sizes:
                tasks = max(workers, int(peer.rate * (SECONDS / 3 if quick else SECONDS)))
                said = peer.run(place, workers=workers, tasks=tasks)
                found[workers] = said["cycles"] / said["seconds"]
                point("throughput", peer.name, workers, found[workers])
                if workers == 32:
                    for part, milliseconds in said.get("quantiles", {}).items():
                        point("latency", peer.name, float(part), milliseconds)
                print(f"    {peer.name}, {workers} workers: {found[workers]:,.0f} cycles/s", flush=True)
    except Missing as missing:
        say(f"{peer.name} is missing here: {missing}")
    else:
        say(f"{peer.name}: {peer.durability}.")
    return found
