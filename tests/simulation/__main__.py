"""Simulations by hand: `python -m tests.simulation 17` repeats a seed, `python -m tests.simulation 0:500` runs many.

`python -m tests.simulation 0:500 network` runs them on a database across a network.
`PYTHONHASHSEED=0 python -m tests.simulation 0:50 heads` prints the hash of the ledger of each seed. A change
that must not change what is recorded gives the same lines before and after it.
"""

from __future__ import annotations

import sys
import time
import traceback

from tests.simulation.run import Run


def main(chosen: str, show: str = "") -> int:
    first, _, last = chosen.partition(":")
    failed = []
    for seed in range(int(first), int(last or int(first) + 1)):
        began = time.perf_counter()
        try:
            report = Run(seed, network=show == "network").go()
            told = f"{seed} {report.head}" if show == "heads" else f"{report} {time.perf_counter() - began:.2f} s"
            print(told, flush=True)
        except Exception:
            traceback.print_exc()
            failed.append(seed)
    for seed in failed:
        print(f"failed: python -m tests.simulation {seed}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else main("0:20"))
