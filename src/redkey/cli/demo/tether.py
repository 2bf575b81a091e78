"""A pipe between the demo and its processes: when the demo ends, even by a crash, the processes end too."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

_STANDARD_INPUT = 0


def tether(on_cut: Callable[[], None] | None = None) -> None:
    """End this process when its standard input ends, because that pipe closes when the demo ends."""
    threading.Thread(target=_hold, args=(on_cut or _stop,), daemon=True).start()


def _hold(on_cut: Callable[[], None]) -> None:
    # Read by file descriptor: a thread that holds the buffered standard input at exit would abort the interpreter.
    while os.read(_STANDARD_INPUT, 1):
        pass
    on_cut()


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
