"""The log of a worker's work, as records of `logging`: a sentence for people, fields for programs.

A program that runs a worker and has not set up logging gets a handler on standard error for the duration of the run
(`shown`). A library, a web server or a test that runs workers keeps its own logging.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from redkey.errors import CallMisused
from redkey.shapes.claims import Assignment

LogStyle = Literal["auto", "text", "json", "quiet"]
# Replaces the argument of `run`, for programs that are started by other programs.
VARIABLE = "REDKEY_WORKER_LOG"
_STYLES = ("auto", "text", "json", "quiet")
_FIELDS = "redkey"
_TITLE_CHARACTERS = 60

_log = logging.getLogger("redkey.client.worker")
_task_log = logging.getLogger("redkey.client.worker.task")


def printable(text: str, longest: int) -> str:
    """Put foreign text on one line, without control characters that a terminal would obey."""
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


class WorkerLog:
    """The log of one agent."""

    def __init__(self, agent: str) -> None:
        self.agent = agent

    def waiting(self, queue: str, roles: tuple[str, ...], concurrency: int) -> None:
        named = f" ({', '.join(role.removeprefix('role_') for role in roles)})" if roles else ""
        many = f", {concurrency} at once" if concurrency > 1 else ""
        where = queue.removeprefix("queue_").removeprefix("queues.")
        self._say("waiting", f"waiting on {where}{named}{many}", queue=where, roles=list(roles))

    def claimed(self, task: Assignment) -> None:
        attempt = f" (attempt {task.attempt})" if task.attempt > 1 else ""
        self._about("claimed", task, f"claimed {_title(task)}{attempt}")

    def ended(self, task: Assignment, outcome: str, seconds: float, reason: str = "") -> None:
        why = f": {printable(reason, 400)}" if reason else ""
        spent = f"in {seconds:.1f} s" if outcome == "done" else f"after {seconds:.1f} s"
        level = logging.INFO if outcome in ("done", "released") else logging.WARNING
        self._about(outcome, task, f"{outcome} {_title(task)} {spent}{why}", level, seconds=round(seconds, 3))

    def missed(self, task_id: str, winner: str) -> None:
        self._say("missed", f"missed {task_id}: {winner} won it", task_id=task_id, winner=winner)

    def rejected(self, queue: str, reason: str) -> None:
        self._say("rejected", f"may not claim from {queue}: {reason}", logging.WARNING, queue=queue, reason=reason)

    def task(self, task: Assignment, claim_id: str) -> logging.LoggerAdapter[logging.Logger]:
        """`ctx.log`: a logger whose records name the agent and the task."""
        fields = {"event": "log", "agent": self.agent, "task_id": task.task_id, "claim_id": claim_id}
        return _TaskLogger(f"{self.agent} {_title(task)}", fields)

    def _about(self, event: str, task: Assignment, text: str, level: int = logging.INFO, **fields: Any) -> None:
        self._say(event, text, level, task_id=task.task_id, title=task.title, **fields)

    def _say(self, event: str, text: str, level: int = logging.INFO, **fields: Any) -> None:
        _log.log(level, "%s %s", self.agent, text, extra={_FIELDS: {"event": event, "agent": self.agent, **fields}})


class _TaskLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds the agent and the task to the messages of a handler."""

    def __init__(self, prefix: str, fields: dict[str, Any]) -> None:
        super().__init__(_task_log)
        # The prefix becomes part of a format string.
        self._prefix, self._fields = prefix.replace("%", "%%"), fields

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        extra = kwargs.get("extra") or {}
        kwargs["extra"] = {**extra, _FIELDS: {**self._fields, **extra}}
        return f"{self._prefix}: {msg}", kwargs


def stopping(held: int, *, interrupted: bool, again: bool) -> None:
    """Log what a stop does with the running tasks."""
    tasks = "1 task" if held == 1 else f"{held} tasks"
    it = "it" if held == 1 else "them"
    if not held:
        text = "stopping"
    elif again:
        text = f"giving back {tasks}"
    else:
        text = f"finishing {tasks}" + (f", Ctrl-C again to give {it} back" if interrupted else "")
    _log.info(text, extra={_FIELDS: {"event": "stopping", "held": held, "again": again}})


@contextmanager
def shown(style: LogStyle) -> Iterator[None]:
    """Write the workers' log to standard error during a run, if the style asks for it."""
    chosen = os.environ.get(VARIABLE, "auto") if style == "auto" else style
    if chosen not in _STYLES:
        source = f"{VARIABLE}={chosen}" if style == "auto" else f"log={chosen!r}"
        raise CallMisused(f"{source} is not a log style: use auto, text, json or quiet", code="log_invalid")
    if chosen == "auto":
        is_program = threading.current_thread() is threading.main_thread() and not _log.hasHandlers()
        chosen = "text" if is_program else "quiet"
    if chosen == "quiet":
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if chosen == "json" else logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    before = _log.level, _log.propagate
    _log.addHandler(handler)
    _log.propagate = False
    if _log.level == logging.NOTSET:
        _log.setLevel(logging.INFO)
    try:
        yield
    finally:
        _log.removeHandler(handler)
        _log.setLevel(before[0])
        _log.propagate = before[1]


class _Json(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {"at": at, "level": record.levelname.lower(), "message": record.getMessage()}
        line.update(getattr(record, _FIELDS, {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _title(task: Assignment) -> str:
    return printable(task.title, _TITLE_CHARACTERS) or task.task_id
