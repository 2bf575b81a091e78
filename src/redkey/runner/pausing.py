"""Pauses: when a runner must not claim, and why.

A runner whose agent cannot be started pauses longer each time, so that a broken program does not pass through the whole
queue. A usage limit of an account pauses every runner of the account: those that share the `--work` directory by a file
there, all others by the server (`shown_pauses.py`). A runner that pauses stays alive at the server and gives its task
back unharmed.
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
    """Until when nothing is claimed (Unix seconds), and why; `code` is the kind of reason."""

    until: float
    reason: str
    code: str = "start_failed"


class Pauses:
    """The pauses of one runner. Threads share it."""

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
        """Pause because the agent cannot work: until its limit ends, or longer each time."""
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
                # Tasks that were at work together fail together: that is one failure.
                return current
            seconds = min(self._first_seconds * 2**self._failures, _LONGEST_SECONDS)
            self._failures += 1
            self._own = Pause(self._clock() + seconds, away.message[:500], away.code)
            return self._own

    def learn(self, pause: Pause) -> None:
        """Take over a usage limit that another runner of the account has met."""
        with self._lock:
            self._share(pause)

    def worked(self) -> None:
        """The agent could be started: the next failure is the first again."""
        with self._lock:
            self._failures = 0

    def current(self) -> Pause | None:
        """The pause that holds now, of this runner or of its account."""
        found = [pause for pause in (self._own, self._shared()) if pause is not None and pause.until > self._clock()]
        return max(found, key=lambda pause: pause.until, default=None)

    def seconds(self) -> float:
        """How long the next claim has to wait."""
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
