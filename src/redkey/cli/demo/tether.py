"""A line between the demo and the processes it starts: when the demo is gone, however it went, they go too."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

_STANDARD_INPUT = 0


def tether(on_cut: Callable[[], None] | None = None) -> None:
    """End this process when its standard input ends: the other end is the demo's, and dies with it."""
    threading.Thread(target=_hold, args=(on_cut or _stop,), daemon=True).start()


def _hold(on_cut: Callable[[], None]) -> None:
    # By its number: a thread that holds the buffered standard input at the end would abort the interpreter.
    while os.read(_STANDARD_INPUT, 1):
        pass
    on_cut()


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
