"""What a call sends, byte for byte: `requests.json` holds this SDK and the TypeScript SDK to the same requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from redkey.client import RedKey, ReplyRefused
from tests.client.scripted import KEY, Heard, answer, events, scripted

CALLS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "requests.json").read_text())
# What the two runtimes say about themselves and their connections.
_OWN = {"host", "user-agent", "connection", "accept-encoding", "accept-language", "sec-fetch-mode"}


def sent(heard: Heard) -> dict[str, Any]:
    """A request as the fixtures write it; a key is drawn anew for each call."""
    headers = {name: value for name, value in heard.headers.items() if name not in _OWN}
    if not heard.body:
        # Nothing is sent, whether the runtime says so or not.
        headers.pop("content-length", None)
    if len(headers.get("idempotency-key", "")) == 32:
        headers["idempotency-key"] = "(32 digits)"
    return {
        "line": heard.line.removesuffix(" HTTP/1.1"),
        "headers": dict(sorted(headers.items())),
        "body": heard.body.decode(),
    }


def made(rk: RedKey, call: dict[str, Any]) -> None:
    """Make a call whose answer is an empty object, which few operations answer with."""
    family, name = call["call"].split(".")
    method = getattr(getattr(rk, family), name)
    try:
        found = method(*call["python"].get("args", ()), **call["python"].get("named", {}))
        if hasattr(found, "page"):
            found.page()
        elif hasattr(found, "close"):
            next(found, None)
    except ReplyRefused:
        pass


def reply(call: dict[str, Any]) -> bytes:
    """What the server answers to a call: an empty object, or a stream of one."""
    return events("data: {}\n\n") if call["call"].endswith(".follow") else answer(200, connection="close")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call["call"])
def test_a_call_sends_these_bytes(call: dict[str, Any]) -> None:
    with scripted(reply(call)) as server, RedKey(server.url, KEY) as rk:
        made(rk, call)
    assert sent(server.heard[0]) == call["request"]
