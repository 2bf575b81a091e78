"""Pauses: when a runner must not claim, and why.

If the agent cannot be started, the runner pauses longer each time, so a broken program does not use up the whole queue.
A usage limit pauses every runner of the account: a file tells those that share the `--work` directory, and the server
tells all others (`shown_pauses.py`). A paused runner releases its task and stays connected to the server.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from redkey.errors import AgentUnavailable

_FIRST_SECONDS: Final = 5.0
_LONGEST_SECONDS: Final = 300.0


class Pause(msgspec.Struct, frozen=True):
    """The end of a pause (Unix seconds) and its reason; `code` is the kind of reason."""

    until: float
    reason: str
    code: str = "start_failed"


class Pauses:
    """The pauses of one runner. Thread-safe."""

    def __init__(
        self,
        directory: Path,
        account: str,
        *,
        first_seconds: float = _FIRST_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.account = account
        self._file, self._first_seconds = directory / f"{account}.json", first_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._own: Pause | None = None
        self._failures = 0

    def begin(self, away: AgentUnavailable) -> Pause:
        """Start a pause: until the usage limit ends, or longer after each failure."""
        with self._lock:
            if away.code == "usage_limit" and away.until is not None:
                pause = Pause(away.until, away.message[:500], away.code)
                self._share(pause)
                return pause
            if away.until is not None:
                self._own = Pause(away.until, away.message[:500], away.code)
                return self._own
            current = self._own
            if current is not None and current.until > self._clock():
                # Concurrent tasks fail together; count that as one failure.
                return current
            seconds = min(self._first_seconds * 2**self._failures, _LONGEST_SECONDS)
            self._failures += 1
            self._own = Pause(self._clock() + seconds, away.message[:500], away.code)
            return self._own

    def learn(self, pause: Pause) -> None:
        """Adopt a usage limit that another runner of the account has reported."""
        with self._lock:
            self._share(pause)

    def worked(self) -> None:
        """Reset the failures: the agent could be started."""
        with self._lock:
            self._failures = 0

    def current(self) -> Pause | None:
        """Return the current pause of this runner or its account."""
        found = [pause for pause in (self._own, self._shared()) if pause is not None and pause.until > self._clock()]
        return max(found, key=lambda pause: pause.until, default=None)

    def seconds(self) -> float:
        """Return how many seconds the next claim has to wait."""
        pause = self.current()
        return max(0.0, pause.until - self._clock()) if pause is not None else 0.0

    def _shared(self) -> Pause | None:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Pause)
        except (OSError, msgspec.DecodeError):
            return None

    def _share(self, pause: Pause) -> None:
        before = self._shared()
        if before is not None and before.until >= pause.until:
            return
        draft = self._file.with_name(f".{secrets.token_hex(8)}")
        draft.write_bytes(msgspec.json.encode(pause))
        draft.replace(self._file)
