"""Seed 002: its literal intents are read, and sessions, agents, messages and events have its fields on both faces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from redkey.bus.runtime.intents import LocalAnswer, MessageAgent, TaskDone, read_intent
from tests.bus.test_http import Caller
from tests.harness.bus_process import BusProcess
from tests.seeds.literal import example

MESSAGE = {
    *("id", "session_id", "src", "dst", "kind", "text", "conversation_id", "conversation_owner"),
    *("parent_message_id", "created_at", "reply_to"),
}


def test_the_literal_intents_are_read() -> None:
    first, second = (read_intent(json.dumps(intent)) for intent in example("002-intents"))
    assert first == MessageAgent(("worker",), "...", ("...",))
    assert second == TaskDone("...")
    without = json.dumps({"intent": "task_done"})
    assert read_intent(without) == TaskDone(None)
    assert read_intent(f"Well: {without}") == LocalAnswer(f"Well: {without}")


def _talk(bus: BusProcess, session: str) -> None:
    """Say something that is answered, with every field of a message that a sender may set."""
    with bus.join(session, "ann") as ann, bus.join(session, "bob") as bob:
        meta = {"conversation_id": "c", "conversation_owner": "ann"}
        ann.ask("message.send", "ann", session=session, dst="bob", payload={"text": "question", "codex": meta})
        asked = bob.receive("bob")
        meta |= {"kind": "reply", "parent_message_id": asked["id"]}
        bob.ask("message.send", "bob", session=session, dst="ann", payload={"text": "answer", "codex": meta})


def test_sessions_agents_messages_and_events_have_the_fields_of_the_seed(tmp_path: Path) -> None:
    home = tmp_path / "w"
    with BusProcess(home) as bus:
        ask, session = Caller(bus), bus.session()
        _talk(bus, session)
        by_http = ask("GET", f"/sessions/{session}")[1]
        with bus.link() as link:
            by_socket = link.ask("session.list", "x")["payload"]["sessions"][0]
            agents = link.ask("agent.list", "x", session=session)["payload"]["agents"]
            listed = link.ask("message.list", "user", session=session, payload={"agent": "ann"})["payload"]["messages"]
        for found in (by_http, by_socket):
            assert {"id", "name", "status", "created_at", "updated_at"} <= found.keys()
            assert found["status"] == "open"
        for shown in (agents, ask("GET", f"/sessions/{session}/agents")[1]):
            assert [agent["id"] for agent in shown] == ["ann", "bob"]
        for messages in (listed, ask("GET", f"/sessions/{session}/agents/ann/messages")[1]):
            _check_answer(messages)
        events = ask("GET", f"/sessions/{session}/events")[1]
        assert all({"id", "session_id", "type", "payload", "created_at"} <= event.keys() for event in events)
        assert ask("POST", f"/sessions/{session}/close")[1]["status"] == "closed"


def _check_answer(messages: list[dict[str, Any]]) -> None:
    (answer,) = messages
    assert MESSAGE - {"reply_to"} <= answer.keys()
    assert (answer["kind"], answer["text"], answer["src"], answer["dst"]) == ("reply", "answer", "bob", "ann")
    assert (answer["conversation_id"], answer["conversation_owner"]) == ("c", "ann")


def test_the_four_kinds_of_messages_are_taken_and_others_are_carried(tmp_path: Path) -> None:
    with BusProcess(tmp_path / "w") as bus:
        ask, session = Caller(bus), bus.session()
        for key in ("ann", "bob"):
            ask("POST", f"/sessions/{session}/agents", {"id": key})
        sent = (("user", 202), ("reply", 202), ("control", 202), ("system", 202), ("gossip", 202), (7, 400))
        for kind, expected in sent:
            body = {"text": "x", "agent_ids": ["bob"], "src": "ann", "kind": kind}
            assert ask("POST", f"/sessions/{session}/messages", body)[0] == expected, kind
        # An unknown kind is read as `user`.
        received = ask("GET", f"/sessions/{session}/agents/bob/messages")[1]
        assert [message["kind"] for message in received] == ["user", "reply", "control", "system", "user"]
