"""Delivery: order, confirmation, redelivery, disconnects, restarts and slow readers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from redkey.bus.envelope import read_line
from redkey.bus.limits import BusLimits
from redkey.errors import StoreFull, StorePoisoned
from tests.harness.running_bus import Running
from tests.harness.weave import Link, Refused

QUICK = {"mode": "auto", "timeout_ms": 50}


def send(link: Link, session: str, dst: str, text: str, **fields: Any) -> str:
    answer = link.ask("message.send", "ann", session=session, dst=dst, payload={"text": text}, **fields)
    return str(answer["payload"]["message_id"])


def confirm(link: Link, session: str, message: str) -> None:
    link.tell("message.ack", "bob", session=session, corr=message, payload={"acked": message})


def texts(link: Link, count: int) -> list[str]:
    return [link.receive("bob")["payload"]["text"] for _ in range(count)]


def messages(link: Link) -> list[str]:
    """The ids of messages that arrived and were not read. Events about other agents may arrive at any time."""
    return [one["id"] for one in link.heard if one["type"] == "message.send"]


def test_messages_arrive_in_the_order_in_which_they_were_accepted(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        keys = [
            ann.tell("message.send", "ann", session=session, dst="bob", payload={"text": str(number)})
            for number in range(1000)
        ]
        assert texts(bob, 1000) == [str(number) for number in range(1000)]
        for key in keys:
            ann.answer(key)


def test_an_unconfirmed_message_is_sent_again_up_to_a_limit(home: Path) -> None:
    with Running(home, BusLimits(deliveries=3)) as running:
        session = running.session()
        with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
            key = send(ann, session, "bob", "hello?", ack=QUICK)
            assert [bob.receive("bob", ack=False)["id"] for _ in range(3)] == [key] * 3
            told = bob.take("message.unacknowledged")
            assert told["payload"] == {"message_id": key, "dst": "bob", "deliveries": 3}
            assert [one for one in bob.heard if one["type"] == "message.send"] == []
        with running.join(session, "bob") as back:
            assert back.receive("bob")["id"] == key


def test_a_confirmed_message_is_not_sent_again(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        key = send(ann, session, "bob", "once", ack=QUICK)
        bob.receive("bob")
        bob.ask("agent.list", "bob", session=session)
        # The bus has the confirmation now. On a busy machine the message may have come again before that.
        bob.heard = [one for one in bob.heard if one.get("id") != key]
        # A later message that is left unconfirmed has come twice before the first could have come again.
        send(ann, session, "bob", "twice", ack={"mode": "manual", "timeout_ms": 200})
        assert [bob.receive("bob", ack=False)["payload"]["text"] for _ in range(2)] == ["twice", "twice"]
        assert key not in [one["id"] for one in bob.heard]


def test_manual_messages_wait_for_the_application(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        key = send(ann, session, "bob", "careful", ack={"mode": "manual", "timeout_ms": 60_000})
        message = bob.receive("bob")
        assert message["ack"] == {"mode": "manual", "timeout_ms": 60_000}
    with running.join(session, "bob") as back:
        assert back.receive("bob")["id"] == key
        confirm(back, session, key)
        back.ask("agent.list", "bob", session=session)
    with running.join(session, "bob") as again:
        again.ask("agent.list", "bob", session=session)
        assert messages(again) == []


def test_a_message_that_needs_no_confirmation_is_sent_once(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        send(ann, session, "bob", "fire", ack={"mode": "none"})
        assert bob.receive("bob")["ack"] == {"mode": "none"}
    with running.join(session, "bob") as back:
        back.ask("agent.list", "bob", session=session)
        assert messages(back) == []


def test_an_agent_that_was_away_gets_its_messages(running: Running) -> None:
    session = running.session()
    running.join(session, "bob").close()
    with running.join(session, "ann") as ann:
        for number in range(20):
            send(ann, session, "bob", str(number))
    with running.join(session, "bob") as bob:
        assert texts(bob, 20) == [str(number) for number in range(20)]


def test_accepted_messages_survive_a_restart(home: Path) -> None:
    with Running(home) as running:
        session = running.session("kept")
        with running.join(session, "bob", "Bob") as bob, running.join(session, "ann") as ann:
            send(ann, session, "bob", "taken")
            bob.receive("bob")
            # Confirmed before what follows is asked, and durable with it.
            bob.ask("agent.update", "bob", session=session, payload={"id": "bob", "name": "Robert"})
        with running.join(session, "ann") as ann:
            for number in range(5):
                send(ann, session, "bob", str(number))
    with Running(home) as running:
        with running.link() as link:
            assert [one["name"] for one in link.ask("session.list", "codex-cli")["payload"]["sessions"]] == ["kept"]
        with running.join(session, "bob") as bob:
            assert texts(bob, 5) == ["0", "1", "2", "3", "4"]
            agents = bob.ask("agent.list", "bob", session=session)["payload"]["agents"]
            assert [(one["id"], one.get("name"), one["online"]) for one in agents] == [
                ("bob", "Robert", True),
                ("ann", None, False),
            ]


def test_the_same_message_again_is_accepted_and_not_delivered_twice(home: Path) -> None:
    with Running(home) as running:
        session = running.session()
        with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
            for _ in range(3):
                send(ann, session, "bob", "same", id="m-1")
            with pytest.raises(Refused, match="id_reused"):
                send(ann, session, "bob", "other", id="m-1")
            send(ann, session, "bob", "next")
            assert texts(bob, 2) == ["same", "next"]
    with Running(home) as running, running.join(session, "ann") as ann:
        send(ann, session, "bob", "same", id="m-1")
        with pytest.raises(Refused, match="id_reused"):
            send(ann, session, "bob", "other", id="m-1")
        records = ann.ask("events.history", "ann", session=session)["payload"]["records"]
        assert [one["envelope"]["id"] for one in records].count("m-1") == 1


def test_a_repeated_message_waits_until_the_first_is_durable(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        payload = {"text": "twins"}
        line = json.dumps(
            {"v": 0, "type": "message.send", "id": "twin", "ts": "2026-01-01T00:00:00Z", "src": "ann", "dst": "bob",
             "session": session, "payload": payload}
        ).encode() + b"\n"  # fmt: skip
        ann.raw(line * 50)
        for _ in range(50):
            ann.answer("twin")
        send(ann, session, "bob", "after")
        assert texts(bob, 2) == ["twins", "after"]


def test_a_removed_agent_leaves_no_messages_behind(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann:
        with running.join(session, "bob") as bob:
            send(ann, session, "bob", "unread", ack={"mode": "manual"})
            bob.ask("agent.remove", "bob", session=session, payload={"id": "bob"})
        with running.join(session, "bob") as new:
            new.ask("agent.list", "bob", session=session)
            assert [one for one in new.heard if one["type"] == "message.send"] == []


def test_a_slow_reader_is_bounded_gets_an_error_and_delays_no_one(home: Path) -> None:
    limits = BusLimits(output_bytes=4096, stalled_seconds=2)
    with Running(home, limits) as running:
        session = running.session()
        slow = running.join(session, "bob")
        with running.join(session, "ann") as ann, running.join(session, "cid") as cid:
            big = "x" * 100_000
            for number in range(20):
                send(ann, session, "bob", f"{number} {big}", ack={"mode": "manual"})
                send(ann, session, "cid", str(number))
                assert cid.receive("cid")["payload"]["text"] == str(number)
            agents: list[dict[str, Any]] = []
            while not agents or agents[0]["online"]:
                agents = ann.ask("agent.list", "ann", session=session)["payload"]["agents"]
        with pytest.raises(EOFError):
            slow.take("nothing more")
        assert slow.heard[-1]["error"]["code"] == "slow_reader"
        assert len([one for one in slow.heard if one["type"] == "message.send"]) < 20
        slow.close()
        with running.join(session, "bob") as back:
            numbers = [back.receive("bob")["payload"]["text"].split()[0] for _ in range(20)]
            assert numbers == [str(number) for number in range(20)]


def test_a_slow_follower_gets_everything_at_its_pace(home: Path) -> None:
    with Running(home, BusLimits(output_bytes=4096)) as running:
        session = running.session()
        with running.join(session, "ann") as ann, running.join(session, "bob"), running.link() as slow:
            slow.answer(slow.tell("events.stream", "codex-cli", session=session, payload={"follow": True}))
            big = "x" * 50_000
            for number in range(40):
                send(ann, session, "bob", f"{number} {big}", ack={"mode": "none"})
            seen = []
            while len(seen) < 40:
                envelope = slow.line()["payload"]["envelope"]
                if envelope["type"] == "message.send":
                    seen.append(int(envelope["payload"]["text"].split()[0]))
            assert seen == list(range(40))


def test_a_slow_agent_gets_the_number_of_missed_events(home: Path) -> None:
    with Running(home, BusLimits(output_bytes=1024, window=1000)) as running:
        session = running.session()
        slow = running.join(session, "bob")
        with running.join(session, "ann") as ann:
            for _ in range(8):
                send(ann, session, "bob", "x" * 100_000, ack={"mode": "none"})
            for number in range(50):
                ann.ask("agent.update", "ann", session=session, payload={"id": "ann", "name": f"Ann {number}"})
            missed = slow.take("events.missed")["payload"]["count"]
            heard = [one for one in slow.heard if one["type"] == "agent.updated"]
            assert missed + len(heard) <= 50
            assert missed > 0
        slow.close()


# When the disk fails.


def test_a_failed_commit_changes_nothing_and_the_bus_continues(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        log, real = running.home_bus.bus.log, running.home_bus.bus.log.commit

        def full(writes: Any) -> None:
            raise StoreFull("no space is left")

        monkeypatch.setattr(log, "commit", full)
        with pytest.raises(Refused, match="unavailable"):
            send(ann, session, "bob", "lost", id="m-1")
        with pytest.raises(Refused, match="unavailable"):
            ann.ask("agent.add", "eve", session=session, payload={"id": "eve"})
        monkeypatch.setattr(log, "commit", real)
        agents = ann.ask("agent.list", "ann", session=session)["payload"]["agents"]
        assert [one["id"] for one in agents] == ["ann", "bob"]
        send(ann, session, "bob", "kept", id="m-1")
        assert texts(bob, 1) == ["kept"]
        assert running.failures == []


def test_after_a_failed_fsync_the_bus_accepts_nothing_more(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob"):

        def poisoned(writes: Any) -> None:
            raise StorePoisoned("an fsync failed")

        monkeypatch.setattr(running.home_bus.bus.log, "commit", poisoned)
        for _ in range(2):
            with pytest.raises(Refused, match="unavailable"):
                send(ann, session, "bob", "unknown")
        assert [type(one) for one in running.failures] == [StorePoisoned]


# What is old.


def test_old_records_that_wait_for_no_agent_are_deleted(home: Path) -> None:
    with Running(home) as running:
        over, session = running.session("over"), running.session("lasting")
        with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
            for number in range(1200):
                ann.tell("message.send", "ann", session=session, dst="bob", id=f"m{number}", payload=str(number))
            for number in range(1200):
                message = bob.receive("bob", ack=number != 7)
                assert message["payload"] == str(number)
            bob.ask("agent.list", "bob", session=session)
            ann.ask("session.close", "ann", session=over)
    with Running(home, BusLimits(retention_days=-1)) as running, running.link() as link:
        running.wait(running.home_bus.bus.forget_old())
        records = link.ask("events.history", "x", session=session, payload={"limit": 5000})["payload"]["records"]
        # The one that nobody has confirmed, and the last, which holds the session's place.
        assert [one["envelope"].get("id") for one in records] == ["m7", "m1199"]
        with pytest.raises(Refused, match="session_not_found"):
            link.ask("events.history", "x", session=over)
        with running.join(session, "bob") as bob, running.join(session, "ann") as ann:
            assert bob.receive("bob")["id"] == "m7"
            send(ann, session, "bob", "on")
            history = ann.ask("events.history", "ann", session=session)["payload"]["records"]
            assert history[-1]["seq"] > records[-1]["seq"]


def test_messages_for_an_agent_that_leaves_in_the_same_commit_are_deleted(home: Path) -> None:
    with Running(home) as running:
        session = running.session()
        with running.join(session, "ann") as ann, running.join(session, "bob") as bob:

            def at_once() -> None:
                bus = running.home_bus.bus
                for number in range(20):
                    envelope = read_line(
                        json.dumps(
                            {"v": 0, "type": "message.send", "id": f"m{number}", "ts": "t", "src": "ann", "dst": "bob",
                             "payload": "x"}
                        ).encode()
                    )  # fmt: skip
                    bus.send(session, envelope, lambda _: None)
                bus.remove_agent(session, "bob", lambda _: None)

            running.inside(at_once)
            assert bob.take("agent.deleted")["payload"]["id"] == "bob"
            ann.ask("agent.list", "ann", session=session)
    with closing(sqlite3.connect(home / "bus.db")) as file:
        assert file.execute("SELECT count(*) FROM pending").fetchone() == (0,)


def test_an_error_in_one_callback_does_not_block_the_others(running: Running) -> None:
    session = running.session()

    def breaks(*_: object) -> None:
        raise ValueError("a mistake")

    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        running.inside(lambda: running.home_bus.bus.on_post(breaks))
        send(ann, session, "bob", "still")
        assert texts(bob, 1) == ["still"]
        send(ann, session, "bob", "here")
        assert texts(bob, 1) == ["here"]


def test_the_timer_drops_confirmed_messages(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        for _ in range(10):
            keys = [ann.tell("message.send", "ann", session=session, dst="bob", payload="x") for _ in range(300)]
            for key in keys:
                ann.answer(key)
                bob.receive("bob")
        bob.ask("agent.list", "bob", session=session)
        assert running.inside(lambda: len(running.home_bus.bus._deliveries._due)) < 2100
