"""What a whole server did to its files and said on its sockets, recorded by strace while real clients use it."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tests.crash.recording import memory_folder
from tests.crash.tracing import TRACED, Call, parse_call
from tests.harness.acts import begin_queue, until
from tests.harness.client import Client
from tests.harness.load import QUEUE
from tests.harness.processes import Process, processes
from tests.harness.server import PATIENCE_SECONDS, begin

_BEGUN = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
_SOCKET = re.compile(r"^(TCP|UNIX|socket)")
_EVENT = re.compile(rb"evt_[0-9A-HJKMNP-TV-Z]{26}")
_KEPT = re.compile(rb'"sha256":"([0-9a-f]{64})","bytes"')
# Agents and messages of the bus are known by names that occur nowhere else.
_TALK = re.compile(rb"bus-(?:agent|text)-\d+")
_SAYS = ("write", "writev", "sendto", "sendmsg")


class Said(msgspec.Struct, frozen=True):
    """What a reply names: from the moment it is written to a socket, it has to be durable."""

    events: frozenset[str]
    contents: frozenset[str]
    talk: frozenset[str]


class ServerHistory(msgspec.Struct, frozen=True):
    """The calls of a server in order, and what it said between them."""

    data: Path
    key: str
    steps: Sequence[Call | Said]


def record_server(answers: int, plant: Sequence[str] = ()) -> ServerHistory:
    """A server that starts on an empty directory, is used until it has answered so often, and stops."""
    with (
        TemporaryDirectory(prefix="redkey-server-", dir=memory_folder()) as folder,
        TemporaryDirectory(prefix="redkey-trace-") as traces,
    ):
        directory, trace = Path(folder), Path(traces) / "trace"
        (directory / "data").mkdir(mode=0o700)
        calls = ",".join([*TRACED.split(), "?sendto", "?sendmsg"])
        strace = ["strace", "-f", "-qq", "--signal=none", "--seccomp-bpf", "-y", "-xx", "-s", "1000000"]
        python = [*strace, "-e", f"trace={calls}", "-o", str(trace), "--", sys.executable, *plant]
        server = begin(directory, python=python)
        try:
            # Not held against the OpenAPI document: that names events in its examples.
            _use(
                Client(server.url, server.key, checked=False), directory / "load.jsonl", server.key, server.url, answers
            )
            os.kill(int(str(server.pid)), signal.SIGTERM)
            assert server.process.wait(PATIENCE_SECONDS) == 0, server.logs()
        finally:
            if server.process.poll() is None:
                os.kill(int(str(server.pid)), signal.SIGKILL)
                server.process.wait()
        steps = [step for step in _steps(trace) if isinstance(step, Said) or _is_about(step, server.data)]
        return ServerHistory(server.data, server.key, steps)


def _use(client: Client, log: Path, key: str, url: str, answers: int) -> None:
    """Agents at work, a follower, talk on the bus, and bodies small and large."""
    with client, processes() as running:
        begin_queue(client, QUEUE)
        running.append(Process("load", log, key, 3, 7, url))
        running.append(Process("follower", key, url))
        for one in running:
            assert one.hear() == "ready"
        for number in range(6):
            body = bytes([number]) * (100 if number % 2 else 40_000)
            kept = client.put("/content", body)
            assert kept.json["sha256"] == sha256(body).hexdigest()
            _talk(client, number)
        until(lambda: log.read_bytes().count(b'{"event": "ok"') >= answers, PATIENCE_SECONDS)
        running[0].finish()


def _talk(client: Client, number: int) -> None:
    """An agent more on the bus, which gets a message and is shown it."""
    session = "/api/sessions/power"
    if number == 0:
        assert client.post("/api/sessions", {"id": "power"}).status in (200, 201)
        assert client.post(f"{session}/agents", {"id": "speaker"}).status in (200, 201)
    agent = f"bus-agent-{number}"
    assert agent in client.post(f"{session}/agents", {"id": agent}).text
    message = {"text": f"bus-text-{number}", "src": "speaker", "agent_ids": [agent]}
    assert client.post(f"{session}/messages", message).status == 202
    assert f"bus-text-{number}" in client.get(f"{session}/agents/{agent}/messages").text


def _is_about(call: Call, data: Path) -> bool:
    """True for a call on a file of the data directory that has a name; a file without one leaves nothing behind."""
    if any(path.endswith("(deleted)") for path in call.paths) or "O_TMPFILE" in " ".join(call.rest):
        return False
    return any(path == str(data) or path.startswith(f"{data}/") for path in call.paths)


def _steps(trace: Path) -> Iterator[Call | Said]:
    """A call on a file counts when it has returned, what is said counts when the call begins: so nothing is taken to
    be durable too early, and nothing to be said too late."""
    begun: dict[str, str] = {}
    with trace.open() as lines:
        for line in lines:
            line = line.rstrip("\n")
            if cut := _BEGUN.match(line):
                begun[cut[1]] = cut[2]
                if said := _said(f"{cut[1]} {cut[2]}) = 0"):
                    yield said
            elif rest := _RESUMED.match(line):
                whole = f"{rest[1]} {begun.pop(rest[1])}{rest[2]}"
                if _said(whole) is None:
                    yield parse_call(whole)[1]
            elif "+++ " not in line[:40]:
                yield _said(line) or parse_call(line)[1]


def _said(line: str) -> Said | None:
    name, _, arguments = line.partition(" ")[2].lstrip().partition("(")
    if name not in _SAYS:
        return None
    descriptor = arguments.partition("<")[2].partition(">")[0]
    if not _SOCKET.match(bytes.fromhex(descriptor.replace("\\x", "")).decode() if "\\x" in descriptor else descriptor):
        return None
    data = b"".join(bytes.fromhex(part.replace("\\x", "")) for part in re.findall(r'"((?:\\x..)*)"', arguments))
    events = frozenset(event.decode() for event in _EVENT.findall(data))
    contents = frozenset(digest.decode() for digest in _KEPT.findall(data))
    return Said(events, contents, frozenset(name.decode() for name in _TALK.findall(data)))
