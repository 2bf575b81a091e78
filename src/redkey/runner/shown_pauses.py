"""Share pauses through the server: report this runner's own, and learn those of its account.

A runner that meets a usage limit reports it with the label of its account. The server pauses all agents of the account,
gives them no task until the limit ends, and shows the pause. Their runners ask the server and wait, in every directory
and on every machine.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from redkey.client import RedKey
from redkey.errors import ClientError
from redkey.runner.pausing import Pause, Pauses

_log = logging.getLogger("redkey.runner")
_PAUSES: Final = frozenset({"usage_limit", "cost_cap", "start_failed"})
_LONGEST_SECONDS: Final = 31_536_000
# Seconds between two requests for a limit that another runner of the account has reported.
_ASK_SECONDS: Final = 5.0
# Ends of a pause that differ by less are equal: the server counts whole seconds from its own clock.
_SAME_SECONDS: Final = 3.0


class ShownPauses:
    """The pauses of one runner, shown at the server. Thread-safe."""

    def __init__(self, pauses: Pauses, rk: RedKey, agent_id: str, account: str, tell: Callable[[Pause], None]) -> None:
        self._pauses, self._rk, self._agent_id, self._account, self._tell = pauses, rk, agent_id, account, tell
        # A pause that an earlier runner of this agent has shown ends with its restart.
        self._shown: Pause | None = Pause(0, "")
        self._asked_at = -math.inf
        self._lock = threading.Lock()

    def seconds(self) -> float:
        """Return how many seconds the next claim has to wait; report a pause that begins or ends."""
        with self._lock:
            is_due = time.monotonic() >= self._asked_at + _ASK_SECONDS
            if is_due:
                self._asked_at = time.monotonic()
        learned = self._ask() if is_due else None
        pause = self._pauses.current()
        with self._lock:
            changed = not _is_same(pause, self._shown)
            self._shown = pause
        if changed:
            if pause is not None:
                self._tell(pause)
            if learned is None or not _is_same(pause, learned):
                self._show(pause)
        return self._pauses.seconds()

    def _ask(self) -> Pause | None:
        """Ask the server for a limit that another runner of the account has reported, and adopt it."""
        try:
            agent = self._rk.agents.get(self._agent_id)
        except ClientError as failed:
            _log.debug("the server was not asked for pauses: %s", failed.code)
            return None
        if agent.pause != "usage_limit" or agent.account != self._account or not agent.paused_until:
            return None
        reason = f"The account {self._account} is at its usage limit."
        found = Pause(datetime.fromisoformat(agent.paused_until).timestamp(), reason, "usage_limit")
        if found.until <= time.time():
            return None
        if not _is_same(found, self._pauses.current()):
            self._pauses.learn(found)
        return found

    def _show(self, pause: Pause | None) -> None:
        seconds = 0 if pause is None else round(min(max(1.0, pause.until - time.time()), _LONGEST_SECONDS))
        code: Any = "none" if pause is None else pause.code if pause.code in _PAUSES else "start_failed"
        try:
            self._rk.agents.heartbeat(self._agent_id, pause=code, pause_seconds=seconds, account=self._account)
        except ClientError as failed:
            _log.warning("the server does not know of the pause: %s", failed.code)
            return
        with self._lock:
            # The account may have a pause already: ask the server again at once.
            self._asked_at = -math.inf


def _is_same(one: Pause | None, other: Pause | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.code == other.code and (one.until == other.until or abs(one.until - other.until) <= _SAME_SECONDS)
