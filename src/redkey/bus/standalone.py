"""The bus of `redkey bus serve`: the Unix face and the HTTP face of one home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from redkey.bus.home_bus import HomeBus
from redkey.bus.http.face import HttpFace
from redkey.bus.http.origin import KnownHosts
from redkey.bus.http.token import TokenGate, open_token
from redkey.bus.limits import BusLimits
from redkey.bus.runtime.relay import RelayPolicy
from redkey.http.exchange import Exchange


class StandaloneBus:
    """A bus without a RedKey server around it, with both faces."""

    def __init__(
        self,
        home: Path,
        on_fatal: Callable[[BaseException], None],
        *,
        policy: RelayPolicy | None = None,
        limits: BusLimits | None = None,
    ) -> None:
        self.home_bus = HomeBus(home, on_fatal, limits=limits, policy=policy)
        self._gate = TokenGate(open_token(home))
        self._face: HttpFace | None = None

    async def __call__(self, exchange: Exchange) -> None:
        if self._face is not None:
            await self._face(exchange)

    async def start(self) -> None:
        await self.home_bus.start()
        self._face = HttpFace(self.home_bus.bus, self._gate, KnownHosts())

    def begin_stop(self) -> None:
        if self._face is not None:
            self._face.begin_stop()

    async def finish_stop(self) -> None:
        await self.home_bus.stop()
