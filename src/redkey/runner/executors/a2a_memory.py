"""Which remote task belongs to which local task, and whether it waits for an answer; kept in files.

A remote agent knows only its own ids. References to earlier tasks are translated to them, and an answer is sent to the
remote task that asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

# How many files are kept; the oldest are removed first.
_LIMIT = 2000


class Remote(msgspec.Struct, frozen=True):
    """A task of the remote agent at a URL; `waits` is the default for files of earlier versions."""

    url: str
    task_id: str
    context_id: str
    waits: bool = True


class RemoteTasks:
    """The remote tasks of one agent: one file each, named by the local task's id."""

    def __init__(self, url: str, directory: Path | None) -> None:
        """Without a directory nothing is stored."""
        self._url, self._directory = url, directory

    def get(self, task_id: str) -> Remote | None:
        """Return the remote task of a local task; None if the agent had none."""
        if self._directory is None:
            return None
        try:
            remote = msgspec.json.decode((self._directory / f"{task_id}.json").read_bytes(), type=Remote)
        except (OSError, ValueError):
            return None
        return remote if remote.url == self._url else None

    def named(self, task_ids: Iterable[str]) -> list[str]:
        """Translate local task ids to remote ones; tasks that the agent does not know are left out."""
        return [remote.task_id for task_id in task_ids if (remote := self.get(task_id)) is not None]

    def keep(self, task_id: str, remote_task_id: str, context_id: str, *, waits: bool) -> None:
        """Store the remote id of a local task; remove it if the agent answered without a task."""
        if self._directory is None:
            return
        if not remote_task_id:
            (self._directory / f"{task_id}.json").unlink(missing_ok=True)
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        remote = Remote(self._url, remote_task_id, context_id, waits)
        (self._directory / f"{task_id}.json").write_bytes(msgspec.json.encode(remote))
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        files = list((self._directory or Path()).glob("*.json"))
        if len(files) <= _LIMIT:
            return
        # Another runner on this directory may remove the same file.
        times: dict[Path, float] = {}
        for file in files:
            with contextlib.suppress(OSError):
                times[file] = file.stat().st_mtime
        for file in sorted(times, key=times.__getitem__)[: len(times) - _LIMIT]:
            file.unlink(missing_ok=True)
