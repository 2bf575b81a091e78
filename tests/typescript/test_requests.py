"""Both SDKs send the same bytes for the same calls, and every operation of the document can be called."""

from __future__ import annotations

import json
import re
import socket
import threading
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any

from redkey.api.openapi import document
from redkey.api.surface import routes
from redkey.app import operations_of
from tests.client.scripted import KEY, Heard, answer, events, read_request
from tests.client.test_requests import CALLS, reply, sent
from tests.typescript.conftest import Compiled
from tools.node import SDK


def made(compiled: Compiled, tmp_path: Path, calls: list[dict[str, Any]], replies: list[bytes]) -> list[Heard]:
    """What a server hears when the SDK makes these calls, one after the other."""
    heard: list[Heard] = []

    class Connection(BaseRequestHandler):
        def handle(self) -> None:
            # Node keeps a connection ready on which nothing may ever come.
            if self.request.recv(1, socket.MSG_PEEK):
                heard.append(read_request(self.request))
                self.request.sendall(replies[len(heard) - 1])

    with ThreadingTCPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            compiled.asked("requests", {"url": url, "apiKey": KEY, "calls": calls}, tmp_path)
        finally:
            server.shutdown()
    return heard


def test_the_same_calls_send_the_same_bytes(compiled: Compiled, tmp_path: Path) -> None:
    heard = made(compiled, tmp_path, CALLS, [reply(call) for call in CALLS])
    assert [sent(one) for one in heard] == [call["request"] for call in CALLS]


def table() -> dict[str, str]:
    """The operations of the SDK: `family.name` -> its line."""
    text, found, family = (SDK / "src" / "generated" / "operations.ts").read_text(), {}, ""
    for name, line in re.findall(r'^ +(\w+): (\{|".*"),?$', text, re.MULTILINE):
        if line == "{":
            family = name
        else:
            found[f"{family}.{name}"] = json.loads(line)
    return found


def test_every_operation_of_the_document_is_called_by_the_path_and_method_that_it_has(
    compiled: Compiled, tmp_path: Path, record_property: Any
) -> None:
    paths = json.loads(document(operations_of(routes())))["paths"]
    documented = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    calls = []
    for name, line in table().items():
        places, takes_nothing = line.count("{}"), " -" in line
        inputs = [] if takes_nothing else ["data"] if "octets" in line else [{}]
        calls.append({"call": name, "typescript": [*(f"id{number}" for number in range(places)), *inputs]})
    streams = ["stream" in line.split() for line in table().values()]
    replies = [events("data: {}\n\n") if is_stream else answer(200, connection="close") for is_stream in streams]
    called = set()
    for heard in made(compiled, tmp_path, calls, replies):
        method, target, _ = heard.line.split(" ")
        parts = target.partition("?")[0]
        found = [place for place in documented if place[0] == method and _fits(place[1], parts)]
        assert len(found) == 1, heard.line
        called.add(found[0])
    assert called == documented
    record_property("proven", f"TypeScript SDK: {len(documented)} operations of the document called")


def _fits(pattern: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{\w+\}", r"id\\d", pattern), path) is not None
