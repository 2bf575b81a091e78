"""Logs of attempts that failed or were blocked: prompt, envelopes, output and files.

    <work>/logs/<task>/<attempt>-<claim>/end.json              how it ended
                                         try-1/...             prompt.md, input.json, stdout, stderr, transcript.jsonl
                                         files/                the working directory, or changes.patch of a worktree

An attempt that succeeds leaves no log. Logs are removed after `keep_days`, and the oldest when there are too many. They
stay on the runner's machine, because they may contain data that must not be sent elsewhere.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

_log = logging.getLogger("redkey.runner")
KEEP_DAYS: Final = 7.0
_MOST_ATTEMPTS: Final = 200
_END: Final = "end.json"
# Files are kept only while this share of the disk stays free.
_LEAST_FREE: Final = 0.05


class LoggedEnd(msgspec.Struct, frozen=True):
    """How a logged attempt ended."""

    task_id: str
    agent: str
    attempt: int
    claim_id: str
    event: str
    reason: str
    at: str
    cost_usd: float = 0.0


class Logs:
    """The logs under one `--work` directory."""

    def __init__(self, root: Path, *, keep_days: float = KEEP_DAYS) -> None:
        self._root, self._keep_seconds = root / "logs", keep_days * 86400

    def open(self, task_id: str, attempt: int, claim_id: str) -> AttemptLog:
        """Open the log of one attempt."""
        return AttemptLog(self._root / task_id / f"{attempt}-{claim_id[-8:].lower()}")

    def sweep(self) -> int:
        """Remove logs that are too old or too many; return how many."""
        ends = sorted(self._root.glob(f"*/*/{_END}"), key=_modified, reverse=True)
        oldest = time.time() - self._keep_seconds
        removed = 0
        for index, end in enumerate(ends):
            if index < _MOST_ATTEMPTS and _modified(end) > oldest:
                continue
            shutil.rmtree(end.parent, ignore_errors=True)
            with contextlib.suppress(OSError):
                end.parent.parent.rmdir()
            removed += 1
        return removed

    def tasks(self, beginning: str) -> list[str]:
        """The logged tasks whose ids begin like this, with or without `task_`."""
        wanted = f"task_{beginning.removeprefix('task_').upper()}"
        return sorted(path.name for path in self._root.glob("task_*") if path.name.startswith(wanted))

    def of(self, task_id: str) -> Iterator[tuple[LoggedEnd, Path]]:
        """Yield the logged attempts of a task, oldest first."""
        for end in sorted((self._root / Path(task_id).name).glob(f"*/{_END}"), key=_modified):
            with contextlib.suppress(msgspec.DecodeError, OSError):
                yield msgspec.json.decode(end.read_bytes(), type=LoggedEnd), end.parent


class AttemptLog:
    """The log of one attempt. A full disk loses the log, never the work."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def begin_try(self, number: int, prompt: str, given: bytes) -> Path | None:
        """Create the directory of one try, with the agent's prompt and input."""
        folder = self.directory / f"try-{number}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            folder.parent.chmod(0o700)
            (folder / "prompt.md").write_text(prompt, encoding="utf-8")
            (folder / "input.json").write_bytes(given)
        except OSError as cause:
            _log.warning("this try is not logged: %s", cause.strerror)
            return None
        return folder

    def keep(self, end: LoggedEnd, place: Path | None = None, patch: bytes = b"") -> None:
        """Keep the log, with the files of the directory or the patch of a worktree."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            (self.directory / _END).write_bytes(msgspec.json.encode(end))
            if patch:
                (self.directory / "changes.patch").write_bytes(patch)
            if place is not None and place.is_dir():
                place.rename(self.directory / "files")
            disk = shutil.disk_usage(self.directory)
            if disk.free < disk.total * _LEAST_FREE:
                _log.warning("the files of %s are not kept: the disk is nearly full", end.task_id)
                shutil.rmtree(self.directory / "files", ignore_errors=True)
        except OSError as cause:
            _log.warning("the log of %s is not complete: %s", end.task_id, cause.strerror)

    def drop(self) -> None:
        """Remove the log: the attempt succeeded."""
        shutil.rmtree(self.directory, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.directory.parent.rmdir()


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def now() -> str:
    """Return the current time as logs write it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
