"""Two servers on one PostgreSQL database."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.harness.postgres import database
from tests.harness.server import Server, serving

BURST = 24000
CONFIG = f"token_seconds = 600\n[rate]\nper_second = 10000\nburst = {BURST}\n"
KEY = "rk_CLUSTERFIRSTKEY1_" + "clusterfirstsecret" * 2


def sealed() -> dict[str, str]:
    """The environment that servers of one database share."""
    return {"REDKEY_STORE_KEY": b64encode(os.urandom(32)).decode(), "REDKEY_BOOTSTRAP_KEY": KEY}


class Pair:
    """Two servers, the address of their database, and the environment that they share."""

    def __init__(self, one: Server, two: Server, url: str, environment: dict[str, str]) -> None:
        self.one, self.two, self.url, self.environment = one, two, url, environment


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    environment = sealed()
    with ExitStack() as stack:
        url = stack.enter_context(database())
        servers = [
            stack.enter_context(
                serving(tmp_path_factory.mktemp(name), "--store", url, environment=environment, config=CONFIG)
            )
            for name in ("one", "two")
        ]
        yield Pair(*servers, url, environment)
