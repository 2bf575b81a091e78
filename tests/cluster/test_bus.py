"""The bus of several servers on one database: one of them hosts it, the others say which one and take no message."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from redkey.client.problem import error_of
from tests.cluster.conftest import KEY, Pair
from tests.harness.acts import until
from tests.harness.client import Client
from tests.harness.server import serving


def test_one_server_hosts_the_bus_until_an_operator_moves_it_and_the_others_name_it(pair: Pair, tmp_path: Path) -> None:
    with Client(pair.one.url, KEY, checked=False) as one, Client(pair.two.url, KEY, checked=False) as two:
        made = one.post("/api/sessions", {"name": "talk"})
        assert made.status in (200, 201), made.text
        elsewhere = two.get("/api/sessions")
        assert (elsewhere.status, elsewhere.json["code"]) == (421, "bus_elsewhere")
        assert elsewhere.json["url"] == pair.one.url
        # Whoever calls by the SDK, or at the terminal beside a server that does not host it, is told where it is.
        refused = error_of(421, {}, elsewhere.content)
        assert refused.code == "bus_elsewhere"
        assert f"call {pair.one.url}" in str(refused)
        environment = {**os.environ, "REDKEY_DATA": str(pair.two.data)}
        environment.pop("WEAVE_HOME", None)
        ran = subprocess.run(
            [sys.executable, "-m", "redkey", "bus", "sessions"], env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 1
        assert f"the bus of these servers is at {pair.one.url}" in ran.stderr
        # No message is taken where only some of its recipients would get it.
        assert two.post("/api/sessions", {"name": "other"}).status == 421
        arguments = ("--store", pair.url)
        with (
            serving(tmp_path, *arguments, environment=pair.environment, config="bus_here = true\n") as third,
            Client(third.url, KEY, checked=False) as moved,
        ):
            assert moved.get("/api/sessions").status == 200
            until(lambda: one.get("/api/sessions").status == 421)
            assert one.get("/api/sessions").json["url"] == third.url
