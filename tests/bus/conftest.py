"""Fixtures for the tests of the bus: one bus in a thread of this process, one as its own process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.running_bus import Running


@pytest.fixture
def home() -> Iterator[Path]:
    """A home whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="rkbus") as folder:
        yield Path(folder) / "weave"


@pytest.fixture
def running(home: Path) -> Iterator[Running]:
    with Running(home) as found:
        yield found
