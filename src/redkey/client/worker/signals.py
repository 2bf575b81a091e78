"""How a run of workers meets signals, and how it runs beside an event loop."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redkey.client.worker.crew import Crew
from redkey.client.worker.tally import Tally


@contextmanager
def stopped_by_signals(crew: Crew) -> Iterator[None]:
    """SIGTERM and SIGINT stop the run; they are as before afterwards. Only the main thread hears signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: Any) -> None:
        crew.heed(number)

    before = {number: signal.signal(number, heard) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None is a handler that was not set from Python, which Python cannot set again.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


async def run_beside(crew: Crew) -> Tally:
    """A run beside the event loop that its async handlers use.

    When the caller is cancelled, the run is stopped, and what it holds is given back before the caller goes on.
    """
    loop = asyncio.get_running_loop()
    with stopped_by_signals(crew):
        running = asyncio.ensure_future(asyncio.to_thread(crew.run, loop))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            crew.stop()
            await asyncio.wait([running])
            raise
