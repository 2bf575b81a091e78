"""Report what work under a claim costs while it runs, so blocked and failed work is counted too."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from redkey.client.worker import Context
from redkey.errors import ClientError


class Costs:
    """The cost of one claim, read from a framework's own total; `before` is that of earlier claims, if there is one."""

    def __init__(self, ctx: Context, cost_usd: Callable[[Any], float | None], before: Any = None) -> None:
        self._ctx, self._cost_usd, self._reported = ctx, cost_usd, 0.0
        self._before = self._read(before) if before else 0.0
        self.usd = 0.0

    def report(self, now: Any) -> None:
        """Report what is new. What cannot be reported now is reported with the next call, or the completion."""
        self.usd = max(self.usd, round(self._read(now) - self._before, 9))
        if self.usd > self._reported:
            with suppress(ClientError):
                self._ctx.usage([{"costUsd": round(self.usd - self._reported, 9)}])
                self._reported = self.usd

    def _read(self, total: Any) -> float:
        """Return the dollars of a total; a state in which no node has named a cost yet has none."""
        with suppress(KeyError):
            return self._cost_usd(total) or 0.0
        return 0.0
