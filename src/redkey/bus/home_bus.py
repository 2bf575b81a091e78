"""The bus of one home: creates its log, state and Unix face, starts them and stops them."""

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
from redkey.bus.log import BusLog
from redkey.bus.routing import router
from redkey.bus.runtime.relay import RelayPolicy
from redkey.bus.uds import UdsFace
from redkey.errors import CannotListen, StoreError

_log = structlog.get_logger("redkey.bus")
_FORGET_SECONDS = 3600.0


class HomeBus:
    """The bus of one home."""

    def __init__(
        self,
        home: Path,
        on_fatal: Callable[[BaseException], None],
        *,
        limits: BusLimits | None = None,
        policy: RelayPolicy | None = None,
        workspace: str = "",
        listens: bool = True,
    ) -> None:
        """`listens` makes a missing Unix socket an error; without it the bus then runs without one."""
        prepare_home(home)
        self._lock = HomeLock(home)
        try:
            self._log = BusLog(home)
        except BaseException:
            self._lock.release()
            raise
        self.home = home
        self._limits, self._policy, self._on_fatal = limits or BusLimits(), policy, on_fatal
        self._workspace, self._listens = workspace, listens
        self._forgetting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load the log, and listen."""
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
            # Callers of a server use HTTP, so this is no warning.
            _log.debug("the bus has no Unix socket", reason=cause.message)
        self.bus.watch_presence()
        self._forgetting = asyncio.create_task(self._forget())

    async def stop(self) -> None:
        """Remove the sockets, commit what was accepted, and release the home."""
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
                _log.warning("expired records could not be deleted", code=cause.code, reason=cause.message)
            await asyncio.sleep(_FORGET_SECONDS)
