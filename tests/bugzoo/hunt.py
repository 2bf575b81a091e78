"""Look for a planted bug: seed after seed, until a run no longer holds."""

from __future__ import annotations

import contextlib
import io

import pytest

from tests.bugzoo.bugs import BUGS
from tests.bugzoo.network_bugs import NETWORK_BUGS
from tests.simulation.run import Run


def seeds_to_find(name: str, most: int, *, network: bool = False) -> tuple[int, str]:
    """How many seeds it took to find the bug, and what gave it away; 0 when it was not found."""
    for seed in range(most):
        with pytest.MonkeyPatch.context() as patch:
            (NETWORK_BUGS if network else BUGS)[name](patch)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    Run(seed, network=network).go()
            except AssertionError as found:
                # Only what a checker says counts; any other error is a fault of the hunt itself.
                return seed + 1, str(found)
    return 0, ""
