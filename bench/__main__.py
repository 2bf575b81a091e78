"""`python -m bench`: run every bench module of this folder, or some by name."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import platform
import sys
from collections.abc import Callable
from types import ModuleType

import bench


def benches() -> dict[str, ModuleType]:
    """The modules of this folder that measure something, by name: those with `main(quick)`."""
    names = sorted(module.name for module in pkgutil.iter_modules(bench.__path__) if not module.name.startswith("_"))
    found = {name: importlib.import_module(f"bench.{name}") for name in names}
    return {name: module for name, module in found.items() if hasattr(module, "main")}


def main(arguments: list[str]) -> int:
    known = benches()
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure RedKey on this machine.")
    parser.add_argument("--quick", action="store_true", help="short rounds: does it run, and roughly how fast")
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(known), help=f"{', '.join(known)}")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, load {load:.1f} before the run")
    for name in options.only or known:
        run: Callable[[bool], None] = known[name].main
        print(f"\n{name}: {(known[name].__doc__ or '').strip().splitlines()[0]}", flush=True)
        run(options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
