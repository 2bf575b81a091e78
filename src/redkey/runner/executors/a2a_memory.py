"""What a runner remembers of a remote agent's tasks: which of them a task of ours was, and whether it waits.

A remote agent knows only ids of its own. So tasks that ours refers to are named to it as it named them, and an answer
goes on with the task that asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

# Files beyond these are dropped, oldest first: a task refers to recent ones.
_LIMIT = 2000


class Remote(msgspec.Struct, frozen=True):
    """A task of the remote agent at a URL; files of earlier versions are of tasks that wait for an answer."""

    url: str
    task_id: str
    context_id: str
    waits: bool = True


class RemoteTasks:
    """The tasks of one remote agent, each in a file under the id of the task that it was sent for."""

    def __init__(self, url: str, directory: Path | None) -> None:
        """Without a directory nothing is remembered."""
        self._url, self._directory = url, directory

    def get(self, task_id: str) -> Remote | None:
        """The remote task of one of ours; None when this agent had none."""
        if self._directory is None:
            return None
        try:
            remote = msgspec.json.decode((self._directory / f"{task_id}.json").read_bytes(), type=Remote)
        except (OSError, ValueError):
            return None
        return remote if remote.url == self._url else None

    def named(self, task_ids: Iterable[str]) -> list[str]:
        """The ids that the remote agent gave to tasks of ours; tasks that it does not know are left out."""
        return [remote.task_id for task_id in task_ids if (remote := self.get(task_id)) is not None]

    def keep(self, task_id: str, remote_task_id: str, context_id: str, *, waits: bool) -> None:
        """Remember what a task of ours is called there; an agent that answered without a task has none."""
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
        # Runners of one directory may drop the same file.
        times: dict[Path, float] = {}
        for file in files:
            with contextlib.suppress(OSError):
                times[file] = file.stat().st_mtime
        for file in sorted(times, key=times.__getitem__)[: len(times) - _LIMIT]:
            file.unlink(missing_ok=True)
