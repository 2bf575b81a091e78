"""The bus inside `redkey serve`: it uses the server's keys, and each session belongs to a workspace and its ledger.

Several servers of one data directory share one bus: the first server runs it, the others answer 503. Servers of one
database share one bus too: the others answer 421 with the URL of the server that hosts it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from redkey.bus.bridge import Bridge
from redkey.bus.home import note_host
from redkey.bus.home_bus import HomeBus
from redkey.bus.http.face import Gate, HttpFace
from redkey.bus.http.origin import KnownHosts
from redkey.errors import CannotListen
from redkey.http.exchange import Exchange
from redkey.services.notices import Notices

_log = structlog.get_logger("redkey.bus")
_NO_BUS = b'{"error":"weave coordinator unavailable","code":"bus_elsewhere"}'


class EmbeddedBus:
    """The bus of a data directory."""

    def __init__(
        self,
        home: Path,
        workspace_id: str,
        gate: Gate,
        hosts: KnownHosts,
        notices: Notices,
        on_fatal: Callable[[BaseException], None],
        elsewhere: Callable[[], str] | None = None,
    ) -> None:
        """`workspace_id` is the workspace of sessions that are created through the Unix socket.

        `elsewhere` is the address of the server that hosts the bus, empty for this one. It may read the store.
        """
        self._elsewhere = elsewhere or (lambda: "")
        self._home, self._workspace_id, self._gate, self._on_fatal = home, workspace_id, gate, on_fatal
        self._hosts, self._notices = hosts, notices
        self._home_bus: HomeBus | None = None
        self._face: HttpFace | None = None
        self._bridge: Bridge | None = None

    async def start(self) -> None:
        url = self._elsewhere()
        note_host(self._home, url)
        if url:
            _log.info("another server hosts the bus", url=url)
            return
        try:
            home_bus = HomeBus(self._home, self._on_fatal, workspace=self._workspace_id, listens=False)
        except CannotListen as refused:
            if refused.code != "bus_running":
                raise
            _log.warning("the bus of this data directory runs in another server", reason=refused.message)
            return
        await home_bus.start()
        self._home_bus = home_bus
        bus = home_bus.bus
        self._bridge = Bridge(bus, self._notices)
        self._bridge.start()
        self._face = HttpFace(bus, self._gate, self._hosts, self._bridge)

    async def __call__(self, exchange: Exchange) -> None:
        if url := self._elsewhere():
            body = {"error": f"another server hosts the bus: call {url}", "code": "bus_elsewhere", "url": url}
            exchange.reply(421, b"content-type: application/json\r\n", msgspec.json.encode(body))
        elif self._face is None:
            exchange.reply(503, b"content-type: application/json\r\nretry-after: 5\r\n", _NO_BUS)
        else:
            await self._face(exchange)

    def begin_stop(self) -> None:
        """End the streams and long polls."""
        if self._face is not None:
            self._face.begin_stop()

    async def stop(self) -> None:
        """Commit what was accepted, and release the home."""
        if self._bridge is not None:
            await self._bridge.stop()
        if self._home_bus is not None:
            await self._home_bus.stop()
