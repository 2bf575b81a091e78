"""The metrics count each request once, whatever happens to its answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest

from redkey.api.adapter import Api
from redkey.api.auth import Authenticator
from redkey.api.call import Call, Raw
from redkey.app import App
from redkey.config import Config
from redkey.http.route import Route
from redkey.shapes.operation import Operation
from tests.http.hosting import Application, hosted

# No status of HTTP: the answer cannot be written.
ODD = Raw(b"", status=799)


def odd(call: Call) -> Raw:
    """Return an answer that cannot be encoded."""
    return ODD


async def odd_later(call: Call) -> Raw:
    """The same from a coroutine."""
    await asyncio.sleep(0)
    return ODD


def fine(call: Call) -> Raw:
    """Return a normal answer."""
    return Raw(b"{}")


def test_a_request_whose_answer_cannot_be_written_is_counted_once(tmp_path: Path) -> None:
    app = App(Config(data=tmp_path / "data"), on_fatal=lambda error: None)
    services = app.services

    def metrics(call: Call) -> Raw:
        """Return the metrics, read on the event loop as the API does."""
        return Raw(services.metrics.text())

    handlers = (odd, odd_later, fine, metrics)
    routes = [Route(Operation(one.__name__, "GET", f"/{one.__name__}"), one) for one in handlers]
    authenticator = Authenticator(services.keys, services.tokens, services.limiter, services.logins)
    api = Api(routes, services, authenticator, services.metrics)
    with hosted(Application(api)) as url, httpx2.Client(base_url=url, timeout=60) as client:
        for name in ("odd", "odd_later"):
            with pytest.raises(httpx2.TransportError):
                client.get(f"/{name}")
        assert client.get("/fine").status_code == 200
        text = client.get("/metrics").text
    app.store.close()
    assert api.open == 0
    counted = [
        line
        for line in text.splitlines()
        if line.startswith("redkey_requests_total") and 'route="/' in line and not line.endswith(" 0.0")
    ]
    assert sorted(line.split('route="')[1].split('"')[0] for line in counted) == ["/fine", "/odd", "/odd_later"]
    assert all(line.endswith(" 1.0") for line in counted), counted
