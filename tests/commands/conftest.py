"""A coordination desk for each test; at the end its ledger must satisfy every invariant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.desk import Desk
from tests.harness.invariants import check_topic
from tests.harness.snapshot import snapshot


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    check_topic(desk.store, desk.topic)
    lived = snapshot(desk.world)
    desk.reload()
    assert snapshot(desk.world) == lived
