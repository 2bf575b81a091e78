"""A standing bus: log, state and Unix face put together over one home, from the first line to the last."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from redkey.bus.bus import Bus
from redkey.bus.home import HomeLock, prepare_home
from redkey.bus.limits import BusLimits
from redkey.bus.log import Log
from redkey.bus.routing import router
from redkey.bus.runtime.relay import Policy
from redkey.bus.uds import UdsFace
from redkey.errors import CannotListen, StoreError

_log = structlog.get_logger("redkey.bus")
_FORGET_SECONDS = 3600.0


class StandingBus:
    """The bus of one home."""

    def __init__(
        self,
        home: Path,
        on_fatal: Callable[[BaseException], None],
        *,
        limits: BusLimits | None = None,
        policy: Policy | None = None,
        workspace: str = "",
        listens: bool = True,
    ) -> None:
        """With `listens` it is an error when no Unix socket can be listened on; without, the bus goes without."""
        prepare_home(home)
        self._lock = HomeLock(home)
        try:
            self._log = Log(home)
        except BaseException:
            self._lock.release()
            raise
        self.home = home
        self._limits, self._policy, self._on_fatal = limits or BusLimits(), policy, on_fatal
        self._workspace, self._listens = workspace, listens
        self._forgetting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take up what the log holds, and listen."""
        self.bus = Bus(
            self._log,
            self._limits,
            wall=time.time_ns,
            ids=lambda: str(uuid.uuid4()),
            route=router(self._policy),
            on_fatal=self._on_fatal,
            home=self._workspace,
        )
        self.uds = UdsFace(self.bus, self.home, self._workspace)
        try:
            await self.uds.start()
        except CannotListen as cause:
            if self._listens:
                await self.stop()
                raise
            # Not worth a warning to a server whose callers come by HTTP.
            _log.debug("the bus has no Unix socket", reason=cause.message)
        self.bus.watch_presence()
        self._forgetting = asyncio.create_task(self._forget())

    async def stop(self) -> None:
        """Make durable what was taken, take the sockets away, and give the home back."""
        if self._forgetting is not None:
            self._forgetting.cancel()
            with suppress(asyncio.CancelledError):
                await self._forgetting
        await self.uds.stop()
        await self.bus.stop()
        self._lock.release()

    async def _forget(self) -> None:
        while True:
            try:
                await self.bus.forget_old()
            except StoreError as cause:
                _log.warning("what is old could not be forgotten", code=cause.code, reason=cause.message)
            await asyncio.sleep(_FORGET_SECONDS)
