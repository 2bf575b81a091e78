"""The judges of the protocol's authors: conformance scenarios against `/mcp`, the inspector against both faces. Opt-in.

They run with `REDKEY_TEST_MCP_JUDGES=DIR`, where `npm install` has put what `tests/mcp/judges/package.json` pins.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

import pytest

from tests.harness.server import Server
from tools.node import find_node

JUDGES = os.environ.get("REDKEY_TEST_MCP_JUDGES", "")
pytestmark = pytest.mark.skipif(
    not JUDGES, reason="the MCP judges are opt-in: REDKEY_TEST_MCP_JUDGES=DIR with node_modules"
)
OLDEST_NODE = (22, 19)
PATIENCE_SECONDS = 120.0
# The other scenarios need the tools, resources and prompts of a server that is made for them.
SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
]


def judge(home: Path, program: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a judge with a throw-away home."""
    node = find_node(OLDEST_NODE)
    assert node is not None, "the judges need Node 22.19 or newer, by the system or by pip (requirements-node.lock)"
    environment = {**os.environ, **variables, "HOME": str(home), "NO_COLOR": "1"}
    command = [node.node, str(Path(JUDGES) / "node_modules" / ".bin" / program), *words]
    return subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )


def copy(source: socket.socket, target: socket.socket) -> None:
    """Pass bytes on as they come, and then the end of them."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def proxy_with_key(server: Server, key: str) -> Iterator[str]:
    """An address whose requests reach the server with a key: the judge has none to send. All else passes unchanged."""
    upstream = urlsplit(server.url)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            head = b""
            while b"\r\n\r\n" not in head:
                data = self.request.recv(65536)
                if not data:
                    return
                head += data
            first, _, rest = head.partition(b"\r\n")
            lines, _, body = rest.partition(b"\r\n\r\n")
            kept = [line for line in lines.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            # One request for each connection, or the next one would pass without the key.
            added = [b"connection: close", b"authorization: Bearer " + key.encode()]
            with socket.create_connection((upstream.hostname, upstream.port)) as onward:
                onward.sendall(b"\r\n".join([first, *kept, *added]) + b"\r\n\r\n" + body)
                sending = threading.Thread(target=copy, args=(self.request, onward), daemon=True)
                sending.start()
                copy(onward, self.request)
                # The caller may keep its side open.
                with suppress(OSError):
                    self.request.shutdown(socket.SHUT_RDWR)
                sending.join()

    class Proxy(ThreadingTCPServer):
        daemon_threads = True

    with Proxy(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_conformance_scenario_passes(scenario: str, server: Server, tmp_path: Path) -> None:
    with proxy_with_key(server, server.key) as url:
        words = ["server", "--url", f"{url}/mcp", "--scenario", scenario, "--output-dir", str(tmp_path / "out")]
        done = judge(tmp_path, "conformance", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(file.read_text()) for file in (tmp_path / "out").rglob("checks.json")]
    statuses = {check["id"]: check["status"] for file in found for check in file}
    # `/mcp` has no sessions, and this judge counts the streams of a session only: it warns and looks no further.
    assert statuses.pop("server-sse-multiple-streams-session", "WARNING") == "WARNING"
    assert set(statuses.values()) == ({"SUCCESS"} if scenario != "server-sse-multiple-streams" else set()), statuses


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("face", ["stdio", "http"])
def test_the_inspector_finds_every_tool_portable(face: str, era: str, server: Server, tmp_path: Path) -> None:
    if face == "http":
        target = [f"{server.url}/mcp", "--header", f"Authorization: Bearer {server.key}"]
    else:
        target = [str(Path(sys.executable).with_name("redkey")), "mcp"]
    words = ["--cli", *target, "--method", "tools/list", "--strict", "--protocol-era", era]
    done = judge(tmp_path, "mcp-inspector", *words, REDKEY_DATA=str(server.data))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    tools = {tool["name"] for tool in json.loads(done.stdout)["tools"]}
    assert "wait_for_task" in tools
    assert ("bus_send" in tools) == (face == "stdio")
