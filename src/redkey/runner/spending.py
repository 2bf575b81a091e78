"""Count what an agent has spent, and enforce its caps: per task, workflow, day, and in total.

Counters are in one SQLite file under `--work`, so caps hold over restarts, attempts, and runners that share the
directory. A model call is judged before it begins and counted when it ends: the call that reaches a cap is the last.

Tasks of one agent call at the same time. So a call begins only while those that already run cannot reach a cap, if
each costs at most twice as much as the dearest call so far. Nearer to a cap calls run one after another.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from redkey.errors import AgentUnavailable, ConfigRefused, StepFailed
from redkey.runner.cost import Meter, PriceTable, Usage
from redkey.runner.named_sql import statements
from redkey.runner.permits import Permits
from redkey.runner.reporting import Reports

_log = logging.getLogger("redkey.runner")
_NANO: Final = 1_000_000_000
_KEPT_SECONDS: Final = 90 * 86400
# How many times the dearest call so far the next one may cost: a conversation grows with each call.
_DEAREST_TIMES: Final = 2
_SQL: Final = Path(__file__).with_name("spending.sql")
Dollars = Annotated[float, msgspec.Meta(gt=0)]


class Caps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """US dollars that may be spent; None is no cap."""

    task: Dollars | None = None
    workflow: Dollars | None = None
    day: Dollars | None = None
    agent: Dollars | None = None

    def __bool__(self) -> bool:
        return self != Caps()


class Spending:
    """The counters of one agent. Thread-safe."""

    def __init__(self, path: Path, agent: str, prices: PriceTable, caps: Caps | None = None) -> None:
        self._agent, self._prices, self._caps, self._lock = agent, prices, caps or Caps(), threading.Lock()
        self._unwritten: list[dict[str, Any]] = []
        self._permits = Permits(path.parent / "calls" / agent)
        try:
            self._db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._db.executescript(statements(_SQL)["schema"])
            self._db.execute(statements(_SQL)["forget"], {"before": int(time.time()) - _KEPT_SECONDS})
        except sqlite3.Error as cause:
            raise ConfigRefused(f"{path} cannot be used to count costs: {cause}") from cause

    def close(self) -> None:
        self._db.close()

    def meter(self, task_id: str, workflow_id: str = "", reports: Reports | None = None) -> Meter:
        """Create the meter of one attempt; it counts here and in the reports to the server."""
        names = {"task": f"{self._agent} {task_id}", "workflow": f"{self._agent} {workflow_id}" if workflow_id else ""}

        spent_usd = 0.0

        def charge(usage: Usage, usd: float) -> None:
            nonlocal spent_usd
            spent_usd += usd
            if reports is not None:
                reports.add(usage, usd)
            self._charge(names, usage, usd)

        @asynccontextmanager
        async def permit() -> AsyncIterator[None]:
            async with self._permit(names), reports.permit(self._reserve()) if reports is not None else nullcontext():
                before_usd, ended = spent_usd, False
                try:
                    yield
                    ended = True
                finally:
                    # A call that failed before it cost anything says nothing of what calls cost.
                    if ended or spent_usd > before_usd:
                        self._count(self._row("dearest", self._agent, spent_usd - before_usd))

        def left() -> float | None:
            known = [self._left(names), reports.left_usd if reports is not None else None]
            return min((usd for usd in known if usd is not None), default=None)

        return Meter(self._prices, charge, left, permit)

    def check(self) -> None:
        """Raise AgentUnavailable if the cap of the day or the agent is reached."""
        self._judge({})

    @asynccontextmanager
    async def _permit(self, names: Mapping[str, str]) -> AsyncIterator[None]:
        """Wait until a call may begin; StepFailed or AgentUnavailable (`cost_cap`) when a cap is reached."""
        # A task has one claim, so only the other caps are shared by calls that run at the same time.
        if not any(scope != "task" for scope, _, _ in self._capped(names)):
            self._judge(names)
            yield
            return

        def may_begin(others: int) -> bool:
            self._judge(names)
            reserve, left = self._reserve(), self._left(names)
            return not others or (reserve is not None and left is not None and left > others * reserve)

        async with self._permits.one(may_begin):
            yield

    def _reserve(self) -> float | None:
        """Return the dollars that one more call may cost; None before the first call has ended."""
        row = self._read("dearest", self._agent)
        return None if row is None else row * _DEAREST_TIMES / _NANO

    def _charge(self, names: Mapping[str, str], usage: Usage, usd: float) -> None:
        cached = usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        scopes = {scope: self._name(scope, names) for scope in Caps.__struct_fields__}
        scopes["model"] = f"{self._agent} {usage.model}" if usage.model else ""
        tokens = {"input_tokens": usage.input_tokens + cached, "output_tokens": usage.output_tokens}
        self._count(*(self._row(scope, name, usd, **tokens) for scope, name in scopes.items() if name))

    def _row(self, scope: str, name: str, usd: float, input_tokens: int = 0, output_tokens: int = 0) -> dict[str, Any]:
        return {
            "scope": scope,
            "name": name,
            "usd_nano": round(usd * _NANO),
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "updated_at": int(time.time()),
        }

    def _count(self, *rows: dict[str, Any]) -> None:
        """Write rows and all that wait. If the disk is full, they stay in memory and the work continues."""
        with self._lock:
            self._unwritten += rows
            try:
                self._db.execute("BEGIN IMMEDIATE")
                for row in self._unwritten:
                    self._db.execute(statements(_SQL)["raise" if row["scope"] == "dearest" else "add"], row)
                self._db.execute("COMMIT")
                self._unwritten.clear()
            except sqlite3.OperationalError as cause:
                _log.warning("costs are counted and not written yet: %s", cause)
                with contextlib.suppress(sqlite3.OperationalError):
                    self._db.execute("ROLLBACK")

    def _judge(self, names: Mapping[str, str]) -> None:
        for scope, cap, name in self._capped(names):
            spent = self._spent(scope, name)
            if spent < cap:
                continue
            text = f"the cost cap of ${cap:.2f} for one {scope} is reached: ${spent:.4f} is spent"
            if scope in ("task", "workflow"):
                raise StepFailed(text, code="cost_cap")
            tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
            until = tomorrow.timestamp() if scope == "day" else float("inf")
            raise AgentUnavailable(text, code="cost_cap", until=until)

    def _left(self, names: Mapping[str, str]) -> float | None:
        return min((cap - self._spent(scope, name) for scope, cap, name in self._capped(names)), default=None)

    def _capped(self, names: Mapping[str, str]) -> list[tuple[str, float, str]]:
        """Return scope, cap and counter name of every cap that holds for these names."""
        scopes = [(scope, getattr(self._caps, scope), self._name(scope, names)) for scope in Caps.__struct_fields__]
        return [(scope, cap, name) for scope, cap, name in scopes if cap is not None and name]

    def _name(self, scope: str, names: Mapping[str, str]) -> str:
        if scope == "day":
            return f"{self._agent} {datetime.now(UTC):%Y-%m-%d}"
        return self._agent if scope == "agent" else names.get(scope, "")

    def _spent(self, scope: str, name: str) -> float:
        return (self._read(scope, name) or 0) / _NANO

    def _read(self, scope: str, name: str) -> int | None:
        """Return what is counted under a name, in billionths of a dollar; None if nothing is."""
        with self._lock:
            row = self._db.execute(statements(_SQL)["read"], {"scope": scope, "name": name}).fetchone()
            known = [] if row is None else [int(row[0])]
            known += [row["usd_nano"] for row in self._unwritten if (row["scope"], row["name"]) == (scope, name)]
        return None if not known else max(known) if scope == "dearest" else sum(known)
