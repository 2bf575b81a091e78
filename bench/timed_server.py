"""`redkey serve` with stopwatches at the borders of its parts: `python -m bench.timed_server TOTALS serve ...`.

A stopwatch counts the processor time of its part, without what is called in it that has a stopwatch of its own. It
costs about a microsecond, so parts are few and whole. On SIGUSR1 the sums so far are written to the file TOTALS.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from threading import get_ident
from time import thread_time_ns
from types import SimpleNamespace
from typing import Any

import orjson

from redkey.stores.durable import replace_file

# part -> where its functions are called from.
PARTS: dict[str, tuple[str, ...]] = {
    "http": ("redkey.http.connection:Connection.data_received", "redkey.http.exchange:Exchange.reply"),
    "auth": ("redkey.api.auth:Authenticator.admit",),
    "decode": ("redkey.http.request:BodyReader.read", "redkey.api.call:Call.identify"),
    "decide": (
        "redkey.services.unit_of_work:decide",
        "redkey.services.unit_of_work:follow_ups",
        "redkey.services.unit_of_work:due",
        "redkey.services.unit_of_work:seal",
    ),
    "validate": ("redkey.services.unit_of_work:encode",),
    "canonicalise": ("redkey.ledger.content:canonical",),
    "hash": ("redkey.ledger.tail:Tail.append", "redkey.ledger.content:body"),
    "SQL": (
        "redkey.stores.sqlite.writer:Writer.begin",
        "redkey.stores.sqlite.writer:Writer.commit",
        "redkey.stores.sqlite.lock:WriterLock.acquire",
        "redkey.stores.sqlite.lock:WriterLock.release",
        "redkey.stores.sqlite.readers:Readers.fetch",
    ),
    "reduce": ("redkey.services.unit_of_work:fold", "redkey.services.unit_of_work:take_rows"),
    "encode": ("redkey.api.adapter:_encode",),
    # What lies between: handlers, the order of requests, the meter, listeners.
    "between": (
        "redkey.api.adapter:Api._find",
        "redkey.services.coordinator:Coordinator._drain",
        "redkey.services.coordinator:Coordinator._arrive",
        "redkey.api.texts:refuse_secrets",
    ),
}


class Stopwatches:
    """Nanoseconds by part, of the thread that serves; what is signed beside it is not of the hot path."""

    def __init__(self) -> None:
        self.totals = dict.fromkeys(PARTS, 0)
        self._thread = get_ident()
        # For each part that is running, what those that it called have taken.
        self._inner = [0]

    def around(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The work with a stopwatch around it."""
        if iscoroutinefunction(work):

            @wraps(work)
            async def timed_await(*arguments: Any, **named: Any) -> Any:
                # Such work almost never waits; when it does, what others do meanwhile is counted too.
                begun = self._begin()
                try:
                    return await work(*arguments, **named)
                finally:
                    self._end(part, begun)

            return timed_await

        def timed(*arguments: Any, **named: Any) -> Any:
            if get_ident() != self._thread:
                return work(*arguments, **named)
            begun = self._begin()
            try:
                return work(*arguments, **named)
            finally:
                self._end(part, begun)

        return timed

    def _begin(self) -> int:
        self._inner.append(0)
        return thread_time_ns()

    def _end(self, part: str, begun: int) -> None:
        spent = thread_time_ns() - begun
        self.totals[part] += spent - self._inner.pop()
        self._inner[-1] += spent


def install(watches: Stopwatches) -> None:
    """Put a stopwatch around every function of every part."""
    for part, places in PARTS.items():
        for place in places:
            module, _, path = place.partition(":")
            holder: Any = importlib.import_module(module)
            *steps, name = path.split(".")
            for step in steps:
                holder = getattr(holder, step)
            setattr(holder, name, watches.around(part, getattr(holder, name)))
    # A wire's bytes are made inside its check: that is the other half of `encode`.
    timed: Any = SimpleNamespace(**vars(orjson))
    timed.dumps = watches.around("canonicalise", orjson.dumps)
    importlib.import_module("redkey.wire.validate").orjson = timed  # type: ignore[attr-defined]


def run(totals: Path) -> None:
    watches = Stopwatches()
    install(watches)
    signal.signal(signal.SIGUSR1, lambda *_: replace_file(totals, json.dumps(watches.totals).encode(), 0o600))
    importlib.import_module("redkey.cli").main()


if __name__ == "__main__":
    run(Path(sys.argv.pop(1)))
