"""Fresh ids: spelled as the schemas ask, of this time, and none twice."""

from __future__ import annotations

import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from redkey.ledger.content import NONCE_BYTES
from redkey.stores.ids import SystemIds
from redkey.wire import files
from redkey.wire.catalogue import SCHEMAS
from redkey.wire.ids import ulid

# More than are drawn ahead at once, several times over.
_MANY = 3000


def test_fresh_ids_are_of_this_time_and_use_every_character_at_every_place() -> None:
    ids, before = SystemIds(), time.time_ns() // 1_000_000
    made = [ids.ulid() for _ in range(_MANY)]
    after = time.time_ns() // 1_000_000
    pattern = files.load(f"{SCHEMAS}/types.schema.json")["$defs"]["ulid"]["pattern"]
    assert all(re.fullmatch(pattern, one) for one in made)
    assert ulid(before, bytes(10)) <= min(made) <= max(made) <= ulid(after, b"\xff" * 10)
    assert [len(set(place)) for place in zip(*(one[10:] for one in made), strict=True)] == [32] * 16
    assert len({one[10:] for one in made}) == _MANY


def test_nonces_are_whole_and_none_comes_twice() -> None:
    ids = SystemIds()
    made = [ids.nonce() for _ in range(_MANY)]
    assert {len(nonce) for nonce in made} == {NONCE_BYTES}
    assert len(set(made)) == _MANY


def test_threads_that_share_them_never_get_the_same() -> None:
    ids, before = SystemIds(), sys.getswitchinterval()
    # Threads take turns at every step.
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            made = list(threads.map(lambda _: (ids.ulid()[10:], ids.nonce()), range(20_000)))
    finally:
        sys.setswitchinterval(before)
    assert len({ending for ending, _ in made}) == len({nonce for _, nonce in made}) == len(made)
