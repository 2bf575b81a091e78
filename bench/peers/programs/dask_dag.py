"""Dask: the graph by `dask.distributed`, in this process only or with two worker processes; nothing is durable."""

from __future__ import annotations

import json
import sys
import time

from distributed import Client

ASKED = json.loads(sys.argv[1])


def noop(*above: int) -> int:
    """The empty task."""
    return len(above)


def run(client: Client, levels: int, width: int) -> None:
    """The whole graph in one submission; each level waits for the one before through one task: its fastest way."""
    name, graph, above = time.time_ns(), {}, ()
    for level in range(levels):
        here = [f"{name}-{level}-{place}" for place in range(width)]
        graph |= dict.fromkeys(here, (noop, *above))
        graph[f"{name}-{level}"] = (noop, *here)
        above = (f"{name}-{level}",)
    client.get(graph, above[0])


def main() -> None:
    """Run the measurement and print its result."""
    settings = {"dashboard_address": None, "n_workers": 1 if not ASKED["processes"] else 2, "threads_per_worker": 2}
    with Client(processes=ASKED["processes"], silence_logs=50, **settings) as client:
        run(client, 1, 1)
        begun = time.perf_counter()
        run(client, ASKED["levels"], ASKED["width"])
        print(json.dumps({"seconds": time.perf_counter() - begun}), flush=True)


if __name__ == "__main__":
    main()
