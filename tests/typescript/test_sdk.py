"""The tests of the TypeScript SDK itself, by `node --test`, against a real server."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import httpx2
import pytest

from redkey.ledger.note import ED25519
from redkey.stores.keys import read_key
from tests.harness.server import Server
from tests.typescript.conftest import Compiled


def expired_token(server: Server) -> str:
    """A token as the server signs it, whose time is over."""
    public_id, _, secret = server.key.rpartition("_")
    form = {"grant_type": "client_credentials", "client_id": public_id, "client_secret": secret}
    token = str(httpx2.post(f"{server.url}/oauth/token", data=form).json()["access_token"])
    header, packed, _ = token.split(".")
    claims = json.loads(urlsafe_b64decode(packed + "=="))
    signer = read_key(next((server.data / "keys" / "oauth").glob("*.key")), ED25519)

    def signed(ends: int) -> str:
        text = f"{header}.{_packed(json.dumps({**claims, 'exp': ends}).encode())}"
        return f"{text}.{_packed(signer.sign_bytes(text.encode()))}"

    # Nothing but its time is wrong with it.
    fresh = {"authorization": f"Bearer {signed(claims['exp'] - 1)}"}
    assert httpx2.get(f"{server.url}/queues", headers=fresh).status_code == 200
    return signed(claims["iat"] - 10)


def _packed(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


@pytest.mark.parametrize("suite", ["calls", "streams"])
def test_the_suites_that_bring_their_own_server(compiled: Compiled, suite: str, record_property: Any) -> None:
    passed(compiled.run(f"{suite}.test"), suite, record_property)


def test_the_suite_against_a_real_server(compiled: Compiled, server: Server, record_property: Any) -> None:
    environment = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key, "EXPIRED_TOKEN": expired_token(server)}
    passed(compiled.run("worker.test", **environment), "worker", record_property)


def test_the_suite_of_those_who_create_tasks(compiled: Compiled, server: Server, record_property: Any) -> None:
    environment = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    passed(compiled.run("tasks.test", **environment), "tasks", record_property)


def passed(printed: str, suite: str, record_property: Any) -> None:
    """Tell how many tests of a suite ran; a suite without tests proves nothing."""
    found = re.search(r"^\S* ?pass (\d+)$", printed, re.MULTILINE)
    assert found is not None, printed
    assert int(found[1]) > 0
    record_property("proven", f"TypeScript SDK: {found[1]} tests of {suite} passed")
