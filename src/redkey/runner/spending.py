"""Count what an agent has spent, and enforce its caps: per task, workflow, day, and in total.

Counters are in one SQLite file under `--work`, so caps hold over restarts, attempts, and runners that share the
directory. Each model call is counted when it ends; the call that reaches a cap is the last one.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from redkey.errors import AgentUnavailable, ConfigRefused, StepFailed
from redkey.runner.cost import Meter, PriceTable, Usage
from redkey.runner.named_sql import statements
from redkey.runner.reporting import Reports

_log = logging.getLogger("redkey.runner")
_NANO: Final = 1_000_000_000
_KEPT_SECONDS: Final = 90 * 86400
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

        def charge(usage: Usage, usd: float) -> None:
            if reports is not None:
                reports.add(usage, usd)
            self._charge(names, usage, usd)

        def left() -> float | None:
            known = [self._left(names), reports.left_usd if reports is not None else None]
            return min((usd for usd in known if usd is not None), default=None)

        return Meter(self._prices, charge, left, *([reports.settle] if reports is not None else []))

    def check(self) -> None:
        """Raise AgentUnavailable if the cap of the day or the agent is reached."""
        for scope in ("day", "agent"):
            self._judge(scope, self._name(scope, {}))

    def _charge(self, names: Mapping[str, str], usage: Usage, usd: float) -> None:
        cached = usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        row = {
            "usd_nano": round(usd * _NANO),
            "input_tokens": usage.input_tokens + cached,
            "output_tokens": usage.output_tokens,
            "updated_at": int(time.time()),
        }
        scopes = {scope: self._name(scope, names) for scope in ("task", "workflow", "day", "agent")}
        scopes["model"] = f"{self._agent} {usage.model}" if usage.model else ""
        with self._lock:
            self._unwritten += [{"scope": scope, "name": name, **row} for scope, name in scopes.items() if name]
            self._write()
        for scope in ("task", "workflow", "day", "agent"):
            self._judge(scope, scopes[scope])

    def _write(self) -> None:
        """Write pending counts. If the disk is full, they stay in memory and the work continues."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for row in self._unwritten:
                self._db.execute(statements(_SQL)["add"], row)
            self._db.execute("COMMIT")
            self._unwritten.clear()
        except sqlite3.OperationalError as cause:
            _log.warning("costs are counted and not written yet: %s", cause)
            with contextlib.suppress(sqlite3.OperationalError):
                self._db.execute("ROLLBACK")

    def _judge(self, scope: str, name: str) -> None:
        cap: float | None = getattr(self._caps, scope)
        if cap is None or not name:
            return
        spent = self._spent(scope, name)
        if spent < cap:
            return
        text = f"the cost cap of ${cap:.2f} for one {scope} is reached: ${spent:.4f} is spent"
        if scope in ("task", "workflow"):
            raise StepFailed(text, code="cost_cap")
        tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        raise AgentUnavailable(text, code="cost_cap", until=tomorrow.timestamp() if scope == "day" else float("inf"))

    def _left(self, names: Mapping[str, str]) -> float | None:
        caps = [(scope, getattr(self._caps, scope), self._name(scope, names)) for scope in self._caps.__struct_fields__]
        return min(
            (cap - self._spent(scope, name) for scope, cap, name in caps if cap is not None and name), default=None
        )

    def _name(self, scope: str, names: Mapping[str, str]) -> str:
        if scope == "day":
            return f"{self._agent} {datetime.now(UTC):%Y-%m-%d}"
        return self._agent if scope == "agent" else names.get(scope, "")

    def _spent(self, scope: str, name: str) -> float:
        with self._lock:
            row = self._db.execute(statements(_SQL)["read"], {"scope": scope, "name": name}).fetchone()
            waiting = sum(one["usd_nano"] for one in self._unwritten if (one["scope"], one["name"]) == (scope, name))
        return float((row[0] if row else 0) + waiting) / _NANO
