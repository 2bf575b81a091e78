"""The blocking and the asynchronous client: the same script with both."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from redkey.bus import AsyncBusClient, BusClient
from redkey.bus.client.core import ClientCore, Received
from redkey.errors import BusLost, BusRefused
from tests.harness.bus_process import BusProcess
from tests.harness.running_bus import Running


def test_the_blocking_client_does_everything(running: Running) -> None:
    with BusClient(running.home) as ann, BusClient(running.home) as bob:
        session = ann.create_session("talk")
        assert [(one.id, one.name) for one in ann.sessions()] == [(session, "talk")]
        ann.join(session, "ann", "Ann")
        bob.join(session, "bob")
        bob.rename("Bob")
        assert [(one.id, one.name, one.online) for one in ann.agents()] == [("ann", "Ann", True), ("bob", "Bob", True)]
        sent = ann.send("bob", "hello")
        got = bob.receive(30)
        assert got is not None
        assert (got.id, got.src, got.text, got.kind, got.sender_name) == (sent.id, "ann", "hello", "user", "Ann")
        bob.send(got.src, "hi", kind="reply", reply_to=got)
        answer = ann.receive(30)
        assert answer is not None
        assert (answer.parent_message_id, answer.conversation_id) == (sent.id, sent.conversation_id)
        assert answer.conversation_owner == "ann"
        ann.send(None, "everybody", to_all=True)
        assert bob.receive(30) is not None
        assert bob.receive(0.01) is None
        kinds = [record["envelope"]["type"] for record in ann.history(limit=2)]
        assert kinds == ["message.send", "message.send"]
        records = list(ann.follow(follow=False))
        assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
        bob.leave()
        ann.close_session(session)
    with BusClient(running.home) as other, pytest.raises(BusRefused) as refused:
        other.join(session, "late")
    assert refused.value.code == "session_closed"


def test_the_asynchronous_client_does_everything(running: Running) -> None:
    async def script() -> None:
        async with AsyncBusClient(running.home) as ann, AsyncBusClient(running.home) as bob:
            session = await ann.create_session("talk")
            await ann.join(session, "ann", "Ann")
            await bob.join(session, "bob")
            await bob.rename("Bob")
            event = await ann.event()
            while event["type"] != "agent.updated":
                event = await ann.event()
            assert event["payload"]["name"] == "Bob"
            sent = await ann.send("bob", "hello", ack={"mode": "manual", "timeout_ms": 60_000})
            got = await bob.receive()
            assert got.id == sent.id
            await bob.confirm(got)
            await bob.send(got.src, "hi", kind="reply", reply_to=got)
            assert (await ann.receive()).text == "hi"
            # Several tasks may ask at once.
            results = await asyncio.gather(*(ann.send("bob", str(number)) for number in range(50)))
            texts = [(await bob.receive()).text for _ in range(50)]
            assert sorted(texts, key=int) == [str(number) for number in range(50)]
            assert len({one.id for one in results}) == 50
            assert [one.id for one in await ann.sessions()] == [session]
            found = [record["seq"] async for record in ann.follow(follow=False)]
            assert found == list(range(1, len(found) + 1))
            assert len(await bob.history(limit=3)) == 3
            await bob.leave()
            await ann.close_session(session)

    asyncio.run(script())


def test_a_client_reconnects_after_a_kill_and_sees_no_message_twice(home: Path) -> None:
    with BusProcess(home) as bus:
        session = bus.session()
        ann, bob = (BusClient(home, timeout=120, reconnect_seconds=120) for _ in range(2))
        ann.join(session, "ann")
        bob.join(session, "bob")
        ann.send("bob", "before", message_id="m1", ack={"mode": "manual", "timeout_ms": 60_000})
        first = bob.receive(30)
        bus.kill()
    again: list[BusProcess] = []
    starter = threading.Thread(target=lambda: again.append(BusProcess(home)))
    starter.start()
    # Sent while there is no bus: it waits for one.
    ann.send("bob", "after", message_id="m2")
    ann.send("bob", "after", message_id="m2")
    second = bob.receive(120)
    starter.join()
    with again[0]:
        assert first is not None
        assert second is not None
        assert (first.id, second.id) == ("m1", "m2")
        assert bob.receive(0.2) is None
        ann.close()
        bob.close()


def test_an_asynchronous_client_reconnects_too(home: Path) -> None:
    async def script() -> list[str]:
        with BusProcess(home) as bus:
            session = bus.session()
            ann, bob = (AsyncBusClient(home, timeout=120, reconnect_seconds=120) for _ in range(2))
            await ann.join(session, "ann")
            await bob.join(session, "bob")
            receiving = asyncio.create_task(bob.receive())
            await ann.agents()
            bus.kill()
        loop = asyncio.get_running_loop()
        starting = loop.run_in_executor(None, BusProcess, home)
        await ann.send("bob", "after")
        found = [(await receiving).text]
        with await starting:
            await ann.close()
            await bob.close()
        return found

    assert asyncio.run(script()) == ["after"]


def test_a_client_without_a_bus_gets_a_clear_error(home: Path) -> None:
    with BusClient(home, reconnect_seconds=0) as client, pytest.raises(BusLost, match="no bus answers"):
        client.sessions()

    async def script() -> None:
        async with AsyncBusClient(home, reconnect_seconds=0) as other:
            await other.sessions()

    with pytest.raises(BusLost, match="no bus answers"):
        asyncio.run(script())


def test_a_client_skips_lines_that_it_cannot_read() -> None:
    core = ClientCore()
    core.agent = "me"
    message = {
        "v": 0, "type": "message.send", "id": "m", "ts": "t", "src": "you", "dst": "me", "session": "s",
        "payload": "hi", "ack": {"mode": "auto"},
    }  # fmt: skip
    line = json.dumps(message).encode() + b"\n"
    core.feed(b"{broken\n[]\n\n" + line[:20])
    core.feed(line[20:] + line)
    assert [one.text for one in core.messages] == ["hi"]
    assert len(core.outgoing) == 2
    core.feed(json.dumps({**message, "id": "x", "dst": "other"}).encode() + b"\n")
    core.feed(json.dumps({**message, "id": "y", "src": "me"}).encode() + b"\n")
    assert len(core.messages) == 1


def test_the_list_of_received_ids_is_bounded() -> None:
    received = Received(limit=3)
    assert [received.first(key) for key in "abcab"] == [True, True, True, False, False]
    assert received.first("d")
    assert received.first("c"), "the least recently used id is forgotten"
