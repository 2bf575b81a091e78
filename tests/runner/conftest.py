"""Fixtures of whole runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner.scene import Scene, scene


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Scene]:
    """A server without anything in it, and room for runners."""
    with scene(tmp_path) as made:
        yield made
