"""A large backlog reaches a client that reads little at a time and confirms one by one, without a deadlock."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import select
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from redkey.bus import AsyncBusClient, BusClient
from redkey.bus.connection import BusConnection
from redkey.bus.limits import BusLimits
from tests.bus.test_http import Caller
from tests.cli.test_bus_command import command
from tests.harness.acts import until
from tests.harness.bus_process import BusProcess
from tests.harness.running_bus import Running
from tests.harness.weave import Link

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
COUNT = 10_000
SMALLEST, LARGEST = 500, 200_000
# asyncio reads at most this much at once.
ONE_READ = 256 * 1024
READERS = ("raw", "blocking", "awaited", "chat", "model")


def sizes() -> list[int]:
    """Many small messages and some large ones; every size is as likely as any other at the large size of this test."""
    rng = random.Random(24)
    if LONG:
        return [int(SMALLEST * (LARGEST / SMALLEST) ** rng.random()) for _ in range(COUNT)]
    return [rng.randint(SMALLEST, LARGEST) if rng.random() < 0.02 else SMALLEST for _ in range(COUNT)]


def fill(link: Link, session: str) -> None:
    """Send the backlog to every agent that is away, with some requests under way at once."""
    keys: list[str] = []
    for number, size in enumerate(sizes()):
        # Replies are shown by a chat with a model too, and are not given to the model.
        payload = {"text": f"{number} ".ljust(size, "x"), "codex": {"kind": "reply"}}
        keys.append(link.tell("message.send", "ann", session=session, topic="agents", payload=payload))
        if len(keys) > 50:
            link.answer(keys.pop(0))
    for key in keys:
        link.answer(key)


@pytest.fixture(scope="module")
def backlog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    import tempfile

    # A connection that takes nothing is closed soon, so that one that hangs is seen to hang.
    limits = BusLimits(stalled_seconds=5.0)
    with tempfile.TemporaryDirectory(prefix="rkbus") as folder, Running(Path(folder) / "weave", limits) as running:
        session = running.session()
        for reader in READERS:
            running.join(session, reader).close()
        with running.join(session, "ann") as ann:
            fill(ann, session)
        yield running, session


def numbers(texts: list[str]) -> list[int]:
    return [int(text.split()[0]) for text in texts]


def read_little(path: Path, session: str, agent: str, count: int = COUNT, seconds: float = 30.0) -> list[str]:
    """Read 8 KB, confirm each message in it by a write that may block, and continue."""
    texts: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(seconds)
        link.connect(str(path))

        def tell(kind: str, key: str, **fields: Any) -> None:
            common = {"v": 0, "type": kind, "id": key, "ts": "2026-01-01T00:00:00Z", "src": agent, "session": session}
            link.sendall(json.dumps({**common, **fields}).encode() + b"\n")

        tell("agent.add", "add", payload={"id": agent})
        rest = b""
        while len(texts) < count:
            data = link.recv(8192)
            assert data, f"cut off after {len(texts)} messages"
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                envelope = json.loads(line)
                assert envelope.get("status") != "error", envelope
                if envelope["type"] == "message.send":
                    texts.append(envelope["payload"]["text"])
                    tell("message.ack", f"a{len(texts)}", corr=envelope["id"], payload={"acked": envelope["id"]})
    return texts


def test_a_client_that_confirms_one_by_one_gets_a_large_backlog(backlog: tuple[Running, str]) -> None:
    running, session = backlog
    assert numbers(read_little(running.home / "coord.sock", session, "raw")) == list(range(COUNT))


def test_the_blocking_client_gets_a_large_backlog(backlog: tuple[Running, str]) -> None:
    running, session = backlog
    with BusClient(running.home, reconnect_seconds=0) as bus:
        bus.join(session, "blocking")
        found = []
        while len(found) < COUNT:
            message = bus.receive(30)
            assert message is not None, f"nothing came after {len(found)} messages"
            found.append(message.text)
    assert numbers(found) == list(range(COUNT))


def test_the_asynchronous_client_gets_a_large_backlog(backlog: tuple[Running, str]) -> None:
    running, session = backlog

    async def script() -> list[str]:
        async with AsyncBusClient(running.home, reconnect_seconds=0) as bus:
            await bus.join(session, "awaited")
            async with asyncio.timeout(120):
                return [(await bus.receive()).text for _ in range(COUNT)]

    assert numbers(asyncio.run(script())) == list(range(COUNT))


def read_slowly(line: list[str], environment: dict[str, str], pattern: bytes) -> list[int]:
    """Run a command, read 8 KB of its output at a time, and give the numbers of the backlog that it shows."""
    with started(line, environment) as output:
        return numbers_shown(output, pattern, COUNT)


@contextmanager
def started(line: list[str], environment: dict[str, str]) -> Iterator[int]:
    """Run a command for the block; give the pipe that it writes to, as a number."""
    pipe = subprocess.PIPE
    with subprocess.Popen(line, env=environment, stdin=pipe, stdout=pipe, bufsize=0) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.fileno()
        finally:
            process.terminate()


def numbers_shown(output: int, pattern: bytes, count: int) -> list[int]:
    found: list[int] = []
    rest = b""
    while len(found) < count:
        ready, _, _ = select.select([output], [], [], 60)
        data = os.read(output, 8192) if ready else b""
        assert data, f"nothing came after {len(found)} messages"
        *lines, rest = (rest + data).split(b"\n")
        shown = (re.match(pattern, one[:200]) for one in lines)
        found += [int(match[1]) for match in shown if match is not None]
    return found


def test_chat_shows_a_large_backlog_to_a_terminal_that_reads_little_at_a_time(backlog: tuple[Running, str]) -> None:
    running, session = backlog
    line, environment = command(running.home, "chat", "--session", session, "--as", "chat")
    assert read_slowly(line, environment, rb"ann: (\d+) ") == list(range(COUNT))


def test_a_chat_with_a_model_shows_a_large_backlog_to_a_terminal_that_reads_little_at_a_time(
    backlog: tuple[Running, str],
) -> None:
    running, session = backlog
    line, environment = command(running.home, "chat", "--session", session, "--as", "model", "--model", "false")
    assert read_slowly(line, environment, rb"ann: (\d+) ") == list(range(COUNT))


def test_tail_shows_everything_that_was_sent_while_its_terminal_read_nothing(home: Path) -> None:
    count = COUNT if LONG else 1_000
    with Running(home, BusLimits(output_bytes=16 * 1024, stalled_seconds=20.0)) as running:
        session = running.session()
        with running.join(session, "ann") as ann, running.join(session, "bob"):
            line, environment = command(running.home, "tail", "--session", session, "-n", "1", "-f")
            with started(line, environment) as output:
                # It follows from the last record that it has shown.
                assert b"agent.created bob" in os.read(output, 8192)
                for number in range(count):
                    payload = {"text": f"{number} ".ljust(2_000, "x")}
                    ann.tell("message.send", "ann", session=session, dst="bob", payload=payload, ack={"mode": "none"})
                ann.ask("agent.list", "ann", session=session)
                until(lambda: any(one.paused for one in connections(running)))
                assert numbers_shown(output, rb".* ann > bob \(user\): (\d+) ", count) == list(range(count))


def test_requests_wait_while_their_sender_does_not_read_and_are_answered_in_order(home: Path) -> None:
    with Running(home, BusLimits(output_bytes=4096, stalled_seconds=20.0)) as running:
        session = running.session()
        with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
            for _ in range(20):
                ann.ask("message.send", "ann", session=session, dst="bob", payload={"text": "x" * 100_000})
            # Nothing was read yet: these wait, and so does what is wrong.
            keys = [bob.tell("agent.list", "bob", session=session) for _ in range(50)]
            bob.raw(b"no JSON\n")
            keys += [bob.tell("agent.list", "bob", session=session) for _ in range(50)]
            answered = []
            while len(answered) < len(keys) + 1:
                found = bob.line()
                if found["type"] == "message.send":
                    bob.tell("message.ack", "bob", session=session, payload={"acked": found["id"]})
                elif found["type"] in ("agent.list", "error"):
                    answered.append(found.get("corr"))
            assert answered == [*keys[:50], None, *keys[50:]]


def connections(running: Running) -> list[BusConnection]:
    return running.inside(lambda: list(running.home_bus.uds._connections))


def memory_of(connection: BusConnection) -> tuple[int, int]:
    """The bytes that a connection keeps of requests, and of what it sends."""
    return connection._deferred_bytes, connection._transport.get_write_buffer_size()


def test_what_waits_for_a_sender_that_never_reads_is_bounded(home: Path) -> None:
    limits = BusLimits(output_bytes=4096, input_bytes=64 * 1024, stalled_seconds=2.0)
    with Running(home, limits) as running:
        session = running.session()
        with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
            for _ in range(10):
                ann.ask("message.send", "ann", session=session, dst="bob", payload={"text": "x" * 100_000})
            line = b'{"v":0,"type":"agent.list","id":"l","ts":"t","src":"bob","session":"%s"}\n' % session.encode()

            def ask_until_cut() -> None:
                with suppress(OSError):
                    while True:
                        bob.raw(line * 100)

            (connection,) = [one for one in connections(running) if (session, "bob") in one.agents]
            kept: list[tuple[int, int]] = []
            asking = threading.Thread(target=ask_until_cut)
            asking.start()
            while asking.is_alive():
                kept.append(running.inside(lambda: memory_of(connection)))
            asking.join()
            requests, messages = (max(sizes) for sizes in zip(*kept, strict=True))
            assert limits.input_bytes < requests <= limits.input_bytes + ONE_READ
            assert limits.output_bytes < messages <= limits.output_bytes + 2 * 100_000
            # The others go on, and the backlog stays for the next connection.
            ann.ask("agent.list", "ann", session=session)
        with running.join(session, "bob") as back:
            assert [len(back.receive("bob")["payload"]["text"]) for _ in range(10)] == [100_000] * 10


def test_a_backlog_reaches_a_follower_by_http_that_reads_little_at_a_time(home: Path) -> None:
    with BusProcess(home) as bus:
        ask, session = Caller(bus), bus.session()
        bus.join(session, "bob").close()
        with bus.join(session, "ann") as ann:
            for number in range(300):
                payload = {"text": f"{number} ".ljust(20_000, "x")}
                ann.ask("message.send", "ann", session=session, dst="bob", payload=payload)
        events = [event for _, event in ask.events(f"/sessions/{session}/events/stream?after=3", 300)]
        texts = [one["payload"]["envelope"]["payload"]["text"] for one in events if one["type"] == "message.send"]
        assert numbers(texts) == list(range(len(texts)))
        taken: list[str] = []
        while waiting := ask("GET", f"/sessions/{session}/agents/bob/messages")[1]:
            for one in waiting:
                taken.append(one["text"])
                ask("POST", f"/sessions/{session}/messages/{one['id']}/ack", {"agent_id": "bob"})
        assert numbers(taken) == list(range(300))
