"""A server that starts takes the bus, also when the first commit fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from redkey.ledger.ports import StoreUnit
from redkey.services import bus_host
from redkey.services.bus_host import BusHost, claim_bus, read_host
from redkey.services.failures import Unavailable
from redkey.stores.clock import SystemClock
from redkey.stores.opening import open_memory

ME = BusHost("server_1", "http://127.0.0.1:1")


@pytest.mark.parametrize("failures", [0, 2, 100])
def test_a_failed_commit_is_tried_again_but_not_for_ever(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_host, "_PAUSES", (0.0, 0.0, 0.0))
    store, tries = open_memory(SystemClock()), 0

    async def act(work: Callable[[StoreUnit], None]) -> None:
        nonlocal tries
        tries += 1
        if tries <= failures:
            raise Unavailable
        with store.write_store() as unit:
            work(unit)

    if failures == 100:
        with pytest.raises(Unavailable):
            asyncio.run(claim_bus(act, ME, move=False))
        assert (tries, read_host(store)) == (4, None)
    else:
        asyncio.run(claim_bus(act, ME, move=False))
        assert (tries, read_host(store)) == (failures + 1, ME)
