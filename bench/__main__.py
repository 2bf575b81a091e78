"""`python -m bench`: run every bench module of this folder, or some by name; a whole run writes the page of results."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
import time
from types import ModuleType

import bench
from bench import RUN, compare, results
from bench.clocks import interpreter

ROUNDS = 3


def benches() -> dict[str, ModuleType]:
    """The modules of this folder that measure something, by name: those with `main(quick)`."""
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_"))
    found = {name: importlib.import_module(f"bench.{name}") for name in names}
    return {name: module for name, module in found.items() if hasattr(module, "main")}


def main(arguments: list[str]) -> int:
    """Run the chosen modules and return the exit code."""
    if arguments[:1] == ["compare"]:
        return compare.run(arguments[1:])
    known = benches()
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure RedKey on this machine.",
        epilog="`python -m bench compare --base REV` compares this checkout with a commit.",
    )
    parser.add_argument("--quick", action="store_true", help="one short round: does it run, and roughly how fast")
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(known), help=f"{', '.join(known)}")
    parser.add_argument("--rounds", type=int, help=f"how often, one module after the other ({ROUNDS})")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write bench/RESULTS.md, its JSON and the plots; with --only, just these sections",
    )
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    print(f"{interpreter()}, {os.cpu_count()} processors, load {load:.1f} before the run")
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    begun, chosen = time.monotonic(), options.only or list(known)
    for turn in range(rounds):
        for name in chosen:
            if turn < getattr(known[name], "ROUNDS", rounds):
                RUN.section = name
                bench.probe_disk()
                of = f" ({turn + 1} of {rounds})" if rounds > 1 else ""
                print(f"\n{name}{of}: {results.title(known[name])}", flush=True)
                started = time.monotonic()
                known[name].main(options.quick)
                print(f"  {time.monotonic() - started:.0f} seconds", flush=True)
    seconds = time.monotonic() - begun
    print(f"\n{seconds / 60:.1f} minutes")
    if options.write:
        sections = {name: results.title(known[name]) for name in chosen}
        if options.only:
            written = results.write_sections(RUN, sections, load)
        else:
            written = results.write(RUN, sections, rounds, load, seconds)
        for path in written:
            print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
