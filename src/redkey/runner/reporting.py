"""Report the cost of an attempt to the server while it runs: around each model call, and before the task is released.

So costs of failed, blocked and released attempts are on the ledger too, and caps of the workspace count all runners. A
report that cannot be delivered is sent with the next one; a completion always has the whole cost.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Final

import msgspec

from redkey.client import ApiError
from redkey.client.worker import AsyncContext
from redkey.errors import AgentUnavailable, ClientError, StepFailed
from redkey.runner.cost import Usage

_log = logging.getLogger("redkey.runner")
_NO_NAME = re.compile(r"[^A-Za-z0-9._:/@+-]+")
_NAME_CHARACTERS: Final = 96
# Seconds between two questions whether a call may begin near a cap.
_ASK_SECONDS: Final = 1.0
# What is reserved for a call of unknown cost: the most that a report may name, more than any cap leaves.
_UNKNOWN_USD: Final = 1_000_000.0
# How many models one report may have; the rest goes into the next one.
_MODELS: Final = 16


class _Total(msgspec.Struct):
    usd: Decimal = Decimal(0)
    input_tokens: int = 0
    output_tokens: int = 0


class Reports:
    """Sends the reports of one claim."""

    def __init__(self, ctx: AsyncContext) -> None:
        self._ctx, self._pending, self._turn = ctx, dict[str, _Total](), asyncio.Lock()
        self._left_usd: float | None = None
        self._cap = ""
        # Whether the workspace has caps; unknown before the first report.
        self._capped = True
        self._silent = False

    @property
    def left_usd(self) -> float | None:
        """Dollars left under the workspace's caps at the last report; None without caps."""
        return self._left_usd

    def add(self, usage: Usage, usd: float) -> None:
        """Add the usage of one model call."""
        total = self._pending.setdefault(_NO_NAME.sub("-", usage.model).strip("-._:/@+")[:_NAME_CHARACTERS], _Total())
        total.usd += Decimal(str(usd))
        total.input_tokens += usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        total.output_tokens += usage.output_tokens

    @asynccontextmanager
    async def permit(self, reserve_usd: float | None) -> AsyncIterator[None]:
        """Reserve what one call may cost at the server, for as long as it runs; None is unknown.

        Near a cap, wait until the calls of other claims have ended. Raise StepFailed (`cost_cap`) or AgentUnavailable
        if a cap of the workspace is reached.
        """
        while self._capped and not await self._may_call(
            _UNKNOWN_USD if reserve_usd is None else min(reserve_usd, _UNKNOWN_USD)
        ):
            await asyncio.sleep(_ASK_SECONDS * (0.75 + random.random() / 2))  # noqa: S311
        try:
            yield
        finally:
            if self._pending or self._capped:
                # Other claims wait for what is reserved.
                await asyncio.shield(self.send())

    async def _may_call(self, reserve_usd: float) -> bool:
        may_call = await self.send(reserve_usd)
        if self._left_usd is None or self._left_usd > 0:
            return may_call
        text = f"the workspace's cost cap for one {self._cap} is reached"
        if self._cap in ("task", "workflow"):
            raise StepFailed(text, code="cost_cap")
        # Only the server knows when the cap allows more; try again after a while.
        raise AgentUnavailable(text, code="cost_cap")

    async def send(self, reserve_usd: float | None = None) -> bool:
        """Send pending usage, or only ask how much the caps leave; return whether a call may begin."""
        async with self._turn:
            if self._silent:
                return True
            sent = dict(list(self._pending.items())[:_MODELS])
            used = [
                {
                    # A user's program may leave out the model.
                    **({"model": model} if model else {}),
                    "costUsd": float(total.usd),
                    "inputTokens": total.input_tokens,
                    "outputTokens": total.output_tokens,
                }
                for model, total in sent.items()
            ]
            self._pending = {model: total for model, total in self._pending.items() if model not in sent}
            try:
                told = await self._ctx.usage(used, reserve_usd=reserve_usd)
            except ClientError as failed:
                self._keep(sent)
                # Older servers and workspaces accept no reports; the completion has the cost.
                self._silent = isinstance(failed, ApiError) and failed.code in ("rules_too_old", "not_found")
                if not self._silent:
                    _log.warning("the costs of %s are not reported yet: %s", self._ctx.task.task_id, failed.code)
                return True
            self._left_usd, self._cap, self._capped = told.left_usd, told.cap, told.left_usd is not None
            return told.may_call

    def _keep(self, sent: dict[str, _Total]) -> None:
        for model, total in sent.items():
            now = self._pending.setdefault(model, _Total())
            now.usd += total.usd
            now.input_tokens += total.input_tokens
            now.output_tokens += total.output_tokens
