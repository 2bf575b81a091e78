"""The bus inside a server: beside its API, with its keys, each session of a workspace, bridged to its ledger.

A data directory may have several servers and has one bus: the first server holds it, the others say so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import structlog

from redkey.bus.bridge import Bridge
from redkey.bus.http.face import Gate, HttpFace
from redkey.bus.http.origin import KnownHosts
from redkey.bus.standing import StandingBus
from redkey.errors import CannotListen
from redkey.http.exchange import Exchange
from redkey.services.notices import Notices

_log = structlog.get_logger("redkey.bus")
_ABSENT = b'{"error":"weave coordinator unavailable","code":"bus_elsewhere"}'


class AttachedBus:
    """The bus of a data directory."""

    def __init__(
        self,
        home: Path,
        workspace_id: str,
        gate: Gate,
        hosts: KnownHosts,
        notices: Notices,
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        """`workspace_id` is where sessions belong that are made through the Unix socket, by this machine's owner."""
        self._home, self._workspace_id, self._gate, self._on_fatal = home, workspace_id, gate, on_fatal
        self._hosts, self._notices = hosts, notices
        self._standing: StandingBus | None = None
        self._face: HttpFace | None = None
        self._bridge: Bridge | None = None

    async def start(self) -> None:
        try:
            standing = StandingBus(self._home, self._on_fatal, workspace=self._workspace_id, listens=False)
        except CannotListen as refused:
            if refused.code != "bus_running":
                raise
            _log.warning("the bus of this data directory runs elsewhere", reason=refused.message)
            return
        await standing.start()
        self._standing = standing
        bus = standing.bus
        self._bridge = Bridge(bus, self._notices)
        self._bridge.start()
        self._face = HttpFace(bus, self._gate, self._hosts, self._bridge)

    async def __call__(self, exchange: Exchange) -> None:
        if self._face is None:
            exchange.reply(503, b"content-type: application/json\r\nretry-after: 5\r\n", _ABSENT)
        else:
            await self._face(exchange)

    def begin_stop(self) -> None:
        """End those who follow."""
        if self._face is not None:
            self._face.begin_stop()

    async def stop(self) -> None:
        """Make durable what was taken, and give the home back."""
        if self._bridge is not None:
            await self._bridge.stop()
        if self._standing is not None:
            await self._standing.stop()
