"""The server itself: can it serve. That it is alive is said beside the declaration (`redkey.shapes.server`)."""

from __future__ import annotations

from redkey.commands.decision import Refused
from redkey.services.caller import Caller
from redkey.services.use_case import use_case
from redkey.shapes import server
from redkey.shapes.server import Readiness


@use_case(server.READYZ)
async def readyz(caller: Caller) -> Readiness:
    """The server can serve."""
    store = caller.means.store
    if caller.means.coordinator.stopping:
        raise Refused(503, "stopping", "The server is stopping.")
    store.topics()
    await caller.in_thread(store.check_writable)
    return Readiness(store=store.engine, status="ready")
