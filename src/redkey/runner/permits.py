"""Admit model calls near a cost cap: count those that run now, in every runner that shares the `--work` directory.

Each running call holds a lock on a file of its own. The kernel releases it when the runner ends, even by kill -9, so a
call that died is never counted. What a call may cost, and when it may begin, `spending` decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from redkey.runner.workplace import locked

# Seconds between two looks whether another call has ended.
_LOOK_SECONDS: Final = 0.2


class Permits:
    """The model calls of one agent that run now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.asynccontextmanager
    async def one(self, may_begin: Callable[[int], bool]) -> AsyncIterator[None]:
        """Hold a permit for one call as soon as `may_begin`, given the number of other calls, allows it."""
        while True:
            taking = asyncio.ensure_future(asyncio.to_thread(self._take, may_begin))
            try:
                taken = await asyncio.shield(taking)
            except asyncio.CancelledError:
                # The thread cannot be stopped: return the permit when it gets one.
                taking.add_done_callback(_give_back_late)
                raise
            if taken is not None:
                break
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            yield
        finally:
            _give_back(taken)

    def _take(self, may_begin: Callable[[int], bool]) -> tuple[Path, int] | None:
        """Take a permit; None if the call has to wait. Whatever `may_begin` raises is the answer."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with locked(self._folder / "lock", wait=True):
            if not may_begin(self._running()):
                return None
            path = self._folder / f"{secrets.token_hex(8)}.call"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            return path, descriptor

    def _running(self) -> int:
        """Count the running calls, and remove the files of those whose runner has died."""
        running = 0
        for path in self._folder.glob("*.call"):
            try:
                with locked(path, wait=False):
                    path.unlink(missing_ok=True)
            except BlockingIOError:
                running += 1
        return running


def _give_back(taken: tuple[Path, int] | None) -> None:
    if taken is not None:
        path, descriptor = taken
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _give_back_late(taking: asyncio.Future[tuple[Path, int] | None]) -> None:
    if taking.exception() is None:
        _give_back(taking.result())
