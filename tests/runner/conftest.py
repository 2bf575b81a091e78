"""Fixtures of whole runs: one server for a module, and for each test a queue and agents of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.scene import Scene, scene
from tests.harness.server import Server, serving

# Small matrices on several threads wait for each other more than they compute; numpy reads this when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def stage(tmp_path: Path, server: Server) -> Iterator[Scene]:
    """A queue without anything in it, and room for runners."""
    number = next(_numbers)
    with scene(tmp_path, server, f"work{number}", f"-{number}") as made:
        yield made
