"""Presence: events for agents that connect and disconnect, removal of dead agents, and states of deliveries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from redkey.bus import BusClient
from redkey.bus.limits import BusLimits
from tests.bus.test_http import Caller
from tests.harness.acts import until
from tests.harness.bus_process import BusProcess
from tests.harness.running_bus import Running
from tests.harness.served_bus import served_bus
from tests.harness.weave import Link, Refused


def online(link: Link, session: str) -> dict[str, bool]:
    agents = link.ask("agent.list", "x", session=session)["payload"]["agents"]
    return {one["id"]: one["online"] for one in agents}


def test_agents_that_disconnect_and_reconnect_cause_events(home: Path) -> None:
    with Running(home, BusLimits(away_seconds=0.2)) as running:
        session = running.session()
        with running.join(session, "ann") as ann:
            running.join(session, "bob", "Bob").close()
            away = ann.take("agent.away")
            assert (away["src"], away["payload"]["id"], away["payload"]["online"]) == ("bob", "bob", False)
            assert online(ann, session) == {"ann": True, "bob": False}
            with running.join(session, "bob") as back:
                assert ann.take("agent.online")["payload"]["name"] == "Bob"
                back.ask("agent.list", "bob", session=session)
                # Read while bob is online, because soon after it leaves there is another event.
                records = ann.ask("events.history", "ann", session=session)["payload"]["records"]
            kinds = [one["envelope"]["type"] for one in records]
            assert kinds == ["session.created", "agent.created", "agent.created", "agent.away", "agent.online"]
            assert [one["envelope"]["payload"].get("online") for one in records[1:]] == [True, True, False, True]


def test_a_quick_reconnect_causes_no_event(home: Path) -> None:
    with Running(home, BusLimits(away_seconds=60.0)) as running:
        session = running.session()
        with running.join(session, "ann") as ann:
            for _ in range(5):
                running.join(session, "bob").close()
            with running.join(session, "bob"):
                ann.ask("agent.list", "ann", session=session)
            assert [one["type"] for one in ann.heard] == ["agent.created"]


def test_presence_is_shown_by_http_and_follows_http_requests(home: Path) -> None:
    with BusProcess(home) as bus:
        ask, session = Caller(bus), bus.session()
        path = f"/sessions/{session}"
        bus.join(session, "bob").close()
        ask("POST", f"{path}/agents", {"id": "web"})
        assert {one["id"]: one["online"] for one in ask("GET", f"{path}/agents")[1]} == {"bob": False, "web": False}
        ask("GET", f"{path}/agents/web/messages")
        assert {one["id"]: one["online"] for one in ask("GET", f"{path}/agents")[1]}["web"] is True
        # The session, two agents, and what became of them; on a slow machine bob is away before web is created.
        told = [event for _, event in ask.events(f"{path}/events/stream", 5)]
        seen = sorted((one["type"], one["payload"]["envelope"]["payload"]["id"]) for one in told)
        assert seen == [
            ("agent.away", "bob"),
            ("agent.created", "bob"),
            ("agent.created", "web"),
            ("agent.online", "web"),
            ("session.created", session),
        ]


def test_the_person_at_the_machine_has_no_presence_on_either_face(home: Path) -> None:
    with BusProcess(home) as bus:
        session = bus.session()
        with bus.join(session, "ann") as ann:
            ann.ask("message.send", "ann", session=session, dst="user", payload={"text": "hello"})
            ask = Caller(bus)
            assert len(ask("GET", f"/sessions/{session}/agents/user/messages")[1]) == 1
            assert len(ann.ask("message.list", "user", session=session)["payload"]["messages"]) == 1
            # Records are durable in order: after this one, an earlier event would be in the history.
            ann.ask("message.send", "ann", session=session, dst="user", payload={"text": "still there?"})
            records = ann.ask("events.history", "ann", session=session)["payload"]["records"]
            kinds = [record["envelope"]["type"] for record in records]
            assert kinds == ["session.created", "agent.created", "message.send", "message.send"]


def test_agents_that_do_not_reconnect_after_a_crash_are_away(home: Path) -> None:
    with BusProcess(home) as bus:
        session = bus.session()
        with bus.join(session, "ann"), bus.join(session, "bob"):
            bus.kill()
    with Running(home, BusLimits(away_seconds=0.2)) as running, running.join(session, "ann") as ann:
        # The stream has it whether bob was away before ann came or after.
        ann.answer(ann.tell("events.stream", "ann", session=session, payload={"follow": True}))
        while True:
            told = ann.take("events.record")["payload"]["envelope"]
            if told["type"] == "agent.away" and told["payload"]["id"] == "bob":
                break
        assert online(ann, session) == {"ann": True, "bob": False}


def test_a_person_removes_an_agent_that_has_crashed(home: Path) -> None:
    with BusProcess(home) as bus:
        ask, session = Caller(bus), bus.session()
        for agent in ("one", "two", "three"):
            bus.join(session, agent).close()
        with bus.join(session, "ann") as ann:
            with pytest.raises(Refused, match="id_mismatch"):
                ann.ask("agent.remove", "ann", session=session, payload={"id": "one"})
            with bus.link() as link:
                link.ask("agent.remove", "user", session=session, payload={"id": "one"})
            told = ann.take("agent.deleted")
            assert told["payload"]["id"] == "one"
            assert ask("DELETE", f"/sessions/{session}/agents/two")[0] == 204
            assert ann.take("agent.deleted")["payload"]["id"] == "two"
            command = [sys.executable, "-m", "redkey", "bus", "agents", "--home", str(home), "--remove", "three"]
            clean = {key: value for key, value in os.environ.items() if not key.startswith(("REDKEY_", "WEAVE_"))}
            subprocess.run(command, env=clean, check=True, timeout=60)
            assert ann.take("agent.deleted")["payload"]["id"] == "three"
            assert online(ann, session) == {"ann": True}


def test_agents_that_stay_away_are_removed_unless_messages_wait_for_them(home: Path) -> None:
    with Running(home, BusLimits(away_seconds=0.05, away_days=-1)) as running:
        session = running.session()
        with running.join(session, "ann") as ann:
            for agent in ("empty", "waiting"):
                running.join(session, agent).close()
                ann.take("agent.away")
            ann.ask("message.send", "ann", session=session, dst="waiting", payload="words")
            running.wait(running.home_bus.bus.forget_old())
            gone = ann.take("agent.deleted")
            assert (gone["src"], gone["payload"]) == ("bus", {"id": "empty", "ok": True, "reason": "away"})
            assert sorted(online(ann, session)) == ["ann", "waiting"]


def test_a_message_to_all_agents_does_not_wait_for_dead_ones(home: Path) -> None:
    with Running(home, BusLimits(away_seconds=0.05, broadcast_seconds=-1)) as running:
        session = running.session()
        with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
            running.join(session, "dead").close()
            ann.take("agent.away")
            sent = ann.ask("message.send", "ann", session=session, topic="agents", payload="all")
            assert bob.receive("bob")["id"] == sent["payload"]["message_id"]
            # What is for it alone does wait.
            ann.ask("message.send", "ann", session=session, dst="dead", payload="yours")
        with running.join(session, "dead") as back:
            assert back.receive("dead")["payload"] == "yours"


def shown_online(ask: Caller, path: str) -> dict[str, bool]:
    return {one["id"]: one["online"] for one in ask("GET", f"{path}/agents")[1]}


def test_agents_by_http_that_stay_away_are_removed_unless_messages_wait_for_them(home: Path) -> None:
    with served_bus(home, BusLimits(asking_seconds=0.05, away_days=-1)) as bus:
        ask = Caller(bus)
        path = f"/sessions/{ask('POST', '/sessions', {})[1]['id']}"
        for agent in ("empty", "waiting"):
            ask("POST", f"{path}/agents", {"id": agent})
            ask("GET", f"{path}/agents/{agent}/messages")
        until(lambda: shown_online(ask, path) == {"empty": False, "waiting": False})
        assert ask("POST", f"{path}/messages", {"text": "words", "agent_ids": ["waiting"]})[0] == 202
        bus.forget_old()
        assert list(shown_online(ask, path)) == ["waiting"]
        gone = ask("GET", f"{path}/events?limit=1")[1][0]["payload"]["envelope"]
        assert (gone["type"], gone["src"]) == ("agent.deleted", "bus")
        assert gone["payload"] == {"id": "empty", "ok": True, "reason": "away"}
        assert [one["text"] for one in ask("GET", f"{path}/agents/waiting/messages")[1]] == ["words"]


def test_a_message_to_all_agents_by_http_does_not_wait_for_dead_ones(home: Path) -> None:
    with served_bus(home, BusLimits(asking_seconds=0.05)) as bus:
        ask = Caller(bus)
        path = f"/sessions/{ask('POST', '/sessions', {})[1]['id']}"
        for agent in ("web", "dead"):
            ask("POST", f"{path}/agents", {"id": agent})
        ask("GET", f"{path}/agents/dead/messages")
        until(lambda: not shown_online(ask, path)["dead"])
    with served_bus(home, BusLimits(broadcast_seconds=-1)) as bus:
        ask = Caller(bus)
        ask("GET", f"{path}/agents/web/messages")
        assert ask("POST", f"{path}/messages", {"text": "all", "to": "agents"})[0] == 202
        assert ask("POST", f"{path}/messages", {"text": "yours", "agent_ids": ["dead"]})[0] == 202
        assert [one["text"] for one in ask("GET", f"{path}/agents/web/messages")[1]] == ["all"]
        assert [one["text"] for one in ask("GET", f"{path}/agents/dead/messages")[1]] == ["yours"]


def test_a_sender_sees_the_deliveries_of_its_message(home: Path) -> None:
    with BusProcess(home) as bus:
        ask, session = Caller(bus), bus.session()
        bus.join(session, "bob").close()

        def by_http(key: str) -> list[Any]:
            return [one["state"] for one in ask("GET", f"/sessions/{session}/messages/{key}")[1]["deliveries"]]

        with BusClient(home) as ann:
            ann.join(session, "ann")
            sent = ann.send("bob", "words", ack={"mode": "manual", "timeout_ms": 60_000})
            assert ([one.state for one in ann.progress(sent)], by_http(sent.id)) == (["waiting"], ["waiting"])
            with bus.join(session, "bob") as bob:
                bob.receive("bob", ack=False)
                assert ([one.state for one in ann.progress(sent)], by_http(sent.id)) == (["delivered"], ["delivered"])
                bob.tell("message.ack", "bob", session=session, payload={"acked": sent.id})
                bob.ask("agent.list", "bob", session=session)
                assert [one.state for one in ann.progress(sent)] == ["acknowledged"]
                assert by_http(sent.id) == ["acknowledged"]
                # For a message to all agents, those that have not confirmed it are shown.
                both = ann.send(None, "all", to_all=True, ack={"mode": "manual", "timeout_ms": 60_000})
                assert bob.receive("bob", ack=False)["id"] == both.id
                assert [(one.agent_id, one.state) for one in ann.progress(both)] == [("bob", "delivered")]
            with bus.link() as link, pytest.raises(Refused, match="message_not_found"):
                link.ask("message.get", "x", session=session, payload={"id": "none"})
