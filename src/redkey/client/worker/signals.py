"""How a run of workers handles signals, and how it runs next to an event loop."""

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
    """Stop the run on SIGTERM and SIGINT; restore the old handlers afterwards.

    Python delivers signals to the main thread only, so nothing changes in other threads.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, frame: Any) -> None:
        crew.heed(number)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None means that the handler was not installed from Python, so Python cannot restore it.
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


async def run_beside(crew: Crew) -> Tally:
    """Run workers next to the event loop of their async handlers.

    If the caller is cancelled, the run stops and releases its claims before the caller continues.
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
