"""The cost of a step: dollars that the agent reports, or its tokens by a price table; and cost caps.

For a model without a price, tokens are counted and the cost is zero, with a warning: finished work is never discarded
for a missing price. So a runner with a cap refuses models without a price.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec

from redkey.errors import ConfigRefused, JsonRefused, OutputRefused
from redkey.wire import files
from redkey.wire.decode import decode

_log = logging.getLogger("redkey.runner")
_MILLION = 1_000_000
_DATED = re.compile(r"-\d{8}$")
_USAGE_LINES = 1000

Tokens = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
Price = Annotated[float, msgspec.Meta(ge=0, le=10_000)]


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens of each kind."""

    input: Price
    output: Price
    cache_write: Price = 0.0
    cache_read: Price = 0.0


class Usage(msgspec.Struct, frozen=True):
    """Usage of one call: US dollars, or tokens of a model."""

    cost_usd: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    model: str = ""
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cache_creation_input_tokens: Tokens = 0
    cache_read_input_tokens: Tokens = 0


class PriceTable:
    """Prices by model; a dated model id has the price of its model."""

    def __init__(self, rates: Mapping[str, Rates]) -> None:
        self._rates = dict(rates)

    def knows(self, model: str) -> bool:
        return self._find(model) is not None

    def _find(self, model: str) -> Rates | None:
        return self._rates.get(model) or self._rates.get(_DATED.sub("", model))

    def cost(self, used: Iterable[Usage]) -> float:
        """Return US dollars with nine decimals; tokens of models without a price cost nothing."""
        return float(round(sum((self._one(usage) for usage in used), Decimal(0)), 9))

    def unpriced(self, used: Iterable[Usage]) -> set[str]:
        """Return the models in this usage that have no price."""
        return {usage.model for usage in used if usage.cost_usd is None and not self.knows(usage.model)}

    def _one(self, usage: Usage) -> Decimal:
        if usage.cost_usd is not None:
            return Decimal(str(usage.cost_usd))
        rates = self._find(usage.model)
        if rates is None:
            return Decimal(0)
        counted = (
            (usage.input_tokens, rates.input),
            (usage.output_tokens, rates.output),
            (usage.cache_creation_input_tokens, rates.cache_write),
            (usage.cache_read_input_tokens, rates.cache_read),
        )
        return sum((Decimal(count) * Decimal(str(price)) for count, price in counted), Decimal(0)) / _MILLION


# Called with each usage and its dollars.
Charge = Callable[[Usage, float], None]
# Waits until a model call may begin, and lasts as long as it; raises StepFailed (`cost_cap`) when a cap is reached.
Permit = Callable[[], AbstractAsyncContextManager[None]]


class Meter:
    """Counts the usage of one attempt while it runs, so failed attempts are counted too.

    `permit` is held around each model call. A cap is judged there, before the call, and never when a call has ended:
    what it has returned is paid for.
    """

    def __init__(
        self,
        prices: PriceTable | None = None,
        charge: Charge | None = None,
        left: Callable[[], float | None] = lambda: None,
        permit: Permit = nullcontext,
    ) -> None:
        self._prices, self._charge, self._left = prices or PriceTable({}), charge, left
        self.permit = permit
        self.used: list[Usage] = []

    def add(self, *used: Usage) -> None:
        """Count the usage of a call."""
        for usage in used:
            known = self._prices.unpriced(self.used)
            self.used.append(usage)
            for model in self._prices.unpriced([usage]) - known:
                _log.warning("there is no price for %r: its tokens are counted, its cost is not", model[:100])
            if self._charge is not None:
                self._charge(usage, self._prices.cost([usage]))

    @property
    def left_usd(self) -> float | None:
        """Dollars left under the smallest cap; None without caps."""
        return self._left()

    @property
    def cost_usd(self) -> float:
        return self._prices.cost(self.used)


def price_table(path: Path | None = None) -> PriceTable:
    """Return the price table of RedKey, overridden by the prices in a file."""
    rates = _rates(files.load("definitions/prices.json"), "definitions/prices.json")
    if path is not None:
        try:
            rates |= _rates(decode(path.read_bytes()), str(path))
        except (OSError, JsonRefused) as cause:
            raise ConfigRefused(f"{path} cannot be read: {cause}") from cause
    return PriceTable(rates)


def _rates(value: Any, name: str) -> dict[str, Rates]:
    try:
        return msgspec.convert(value, _Table).models
    except msgspec.ValidationError as cause:
        raise ConfigRefused(f"{name} is not a price table: {cause}") from cause


class _Table(msgspec.Struct, frozen=True):
    models: dict[str, Rates]


def read_usage(data: bytes) -> list[Usage]:
    """Read a program's usage file, one JSON object per line; OutputRefused if it is anything else."""
    lines = [line for line in data.splitlines() if line.strip()]
    if len(lines) > _USAGE_LINES:
        raise OutputRefused(f"the usage file has more than {_USAGE_LINES} lines", code="usage_invalid")
    try:
        values = [decode(data)]
    except JsonRefused:
        values = [_line(line) for line in lines]
    try:
        return [msgspec.convert(value, Usage) for value in values]
    except msgspec.ValidationError as cause:
        raise OutputRefused(f"the usage file is invalid: {cause}", code="usage_invalid") from cause


def _line(line: bytes) -> Any:
    try:
        return decode(line)
    except JsonRefused as cause:
        raise OutputRefused(f"the usage file is not JSON: {cause.message}", code="usage_invalid") from cause
