"""The bridge from the ledger to the bus: which sessions may be bound, only once, and not after their end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from redkey.bus.bridge import Bridge
from redkey.bus.bus import Bus
from redkey.bus.home_bus import HomeBus
from redkey.bus.model import SessionState
from redkey.errors import BusRefused
from redkey.services.notices import Notices
from tests.harness.callers import Callers, with_callers
from tests.harness.office import turns

Test = Callable[[Callers, Bus, Bridge], Awaitable[None]]


def with_bridge(directory: Path, test: Test) -> None:
    """Run a test with the bridge of a bus beside a server."""

    async def whole(callers: Callers) -> None:
        fatal: list[BaseException] = []
        standing = HomeBus(directory / "bus", fatal.append, workspace=callers.workspace_id, listens=False)
        await standing.start()
        bridge = Bridge(standing.bus, Notices(callers.store, callers.app.subscriptions))
        bridge.start()
        try:
            await test(callers, standing.bus, bridge)
        finally:
            await bridge.stop()
            await standing.stop()
        assert not fatal

    with_callers(directory / "data", whole)


async def session_of(bus: Bus, workspace: str) -> SessionState:
    durable: asyncio.Future[BusRefused | None] = asyncio.get_running_loop().create_future()
    session = bus.create_session("tester", "talk", durable.set_result, workspace=workspace)
    assert await durable is None
    return session


def test_a_session_that_is_bound_twice_at_once_follows_once(tmp_path: Path) -> None:
    async def test(callers: Callers, bus: Bus, bridge: Bridge) -> None:
        session = await session_of(bus, callers.workspace_id)
        await asyncio.gather(bridge.bind(session), bridge.bind(session))
        assert (bridge.is_bound(session), callers.app.subscriptions.count) == (True, 1)
        await bridge.unbind(session)
        await turns()
        assert (bridge.is_bound(session), callers.app.subscriptions.count) == (False, 0)

    with_bridge(tmp_path, test)


def test_a_session_without_a_workspace_cannot_be_bound(tmp_path: Path) -> None:
    async def test(callers: Callers, bus: Bus, bridge: Bridge) -> None:
        session = await session_of(bus, "")
        with pytest.raises(BusRefused) as refused:
            await bridge.bind(session)
        assert refused.value.code == "no_ledger"
        assert not bridge.is_bound(session)

    with_bridge(tmp_path, test)
