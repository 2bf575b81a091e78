"""`redkey serve` with an idempotency window of a few keys: `python tests/api/short_window.py -m redkey serve …`.

The window is a bound of the code, not a setting: no server of ours may have another one.
"""

from __future__ import annotations

import runpy
import sys

from redkey.readmodel import request_keys
from redkey.reducers import world
from redkey.services import answers

LIMIT = 12

if __name__ == "__main__":
    for module in (world, request_keys, answers):
        assert module.IDEMPOTENCY_LIMIT == 250_000
        module.IDEMPOTENCY_LIMIT = LIMIT  # type: ignore[attr-defined]
    del sys.argv[0:2]
    runpy.run_module("redkey", run_name="__main__")
