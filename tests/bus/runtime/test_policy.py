"""Relay policy, normalisation and the loop guard: deterministic, by kind and by chain."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.bus.runtime.events import (
    AgentsUpdated,
    Message,
    MessageReceived,
    Normaliser,
    Peer,
    SessionUpdated,
    message_of,
    payload_of,
    text_of,
)
from redkey.bus.runtime.relay import CHAIN_LIMIT, Relay, RelayPolicy

PEERS = (Peer("zed", "Zed", True), Peer("ann", "Ann", True), Peer("bob", "Bob"))


def message(**changes: Any) -> Message:
    fields: dict[str, Any] = {
        "id": "m1", "session_id": "s", "src": "bob", "kind": "user", "text": "hi", "conversation_id": "c",
        "conversation_owner": "bob", "created_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return Message(**{**fields, **changes})


def relayed(policy: RelayPolicy, one: Message) -> list[str]:
    relay = Relay(policy)
    relay.handle(AgentsUpdated("s", PEERS))
    return [send.dst for send in relay.handle(MessageReceived(one))]


@pytest.mark.parametrize(
    ("policy", "one", "targets"),
    [
        (RelayPolicy(), message(dst="ann"), ["ann"]),
        (RelayPolicy(), message(dst="bob"), []),
        (RelayPolicy(), message(), ["ann"]),
        (RelayPolicy(leads="multiple"), message(), ["ann", "zed"]),
        (RelayPolicy(leads="multiple"), message(src="ann"), ["zed"]),
        (RelayPolicy(), message(src="ann"), ["zed"]),
        (RelayPolicy(), message(kind="reply", dst="ann"), []),
        (RelayPolicy(relay_replies=True), message(kind="reply", dst="ann"), ["ann"]),
        (RelayPolicy(relay_replies=True), message(kind="control", dst="ann"), []),
        (RelayPolicy(relay_replies=True), message(kind="system", dst="ann"), []),
    ],
)
def test_which_messages_are_relayed_to_which_agents(policy: RelayPolicy, one: Message, targets: list[str]) -> None:
    assert relayed(policy, one) == targets


def test_a_relayed_message_names_its_original() -> None:
    relay = Relay()
    relay.handle(AgentsUpdated("s", PEERS))
    (send,) = relay.handle(MessageReceived(message(dst="ann")))
    assert (send.session_id, send.src, send.kind, send.text, send.reply_to) == ("s", "bob", "user", "hi", "m1")


def test_nothing_is_relayed_before_the_agents_are_known_or_after_the_end() -> None:
    relay = Relay()
    assert relay.handle(MessageReceived(message(dst="ann"))) == []
    relay.handle(AgentsUpdated("s", PEERS))
    assert len(relay.handle(MessageReceived(message(dst="ann")))) == 1
    # The same input again is relayed again: what is a repetition is the bus's to know.
    assert len(relay.handle(MessageReceived(message(dst="ann")))) == 1
    relay.handle(SessionUpdated("s", "closed"))
    assert relay.handle(MessageReceived(message(dst="ann"))) == []


def test_a_chain_of_answers_always_ends_at_its_limit() -> None:
    def ping_pong() -> int:
        relay = Relay(RelayPolicy(relay_replies=True))
        relay.handle(AgentsUpdated("s", PEERS))
        count, speaker, other, parent = 0, "ann", "bob", None
        while count < 1000:
            key = f"m{count}"
            one = message(id=key, src=speaker, dst=other, kind="reply" if parent else "user", parent_message_id=parent)
            if not relay.handle(MessageReceived(one)):
                break
            count, parent, speaker, other = count + 1, key, other, speaker
        return count

    assert [ping_pong() for _ in range(3)] == [CHAIN_LIMIT] * 3


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ("plain", "plain"),
        ({"text": "a", "input": {"text": "b"}}, "a"),
        ({"text": " ", "input": {"text": "b"}}, "b"),
        ({"other": 1}, '{"other":1}'),
        ([1], "[1]"),
    ],
)
def test_text_is_found_where_clients_put_it(payload: Any, text: str) -> None:
    assert text_of(payload) == text


def test_a_message_gets_its_defaults() -> None:
    envelope = {
        "v": 0, "type": "message.send", "id": "m", "ts": "t", "src": "ann", "session": "s",
        "topic": "agent.bob.inbox", "payload": {"text": "hi", "codex": {"conversation_id": " ", "kind": "Odd"}},
    }  # fmt: skip
    found = message_of(envelope)
    assert (found.conversation_id, found.conversation_owner, found.kind, found.dst) == ("m", "ann", "user", "bob")
    assert found.parent_message_id is None


def test_payloads_survive_writing_and_reading() -> None:
    one = message(kind="reply", parent_message_id="m0", sender_name="Bob", dst="ann")
    envelope = {"type": "message.send", "id": "m1", "ts": one.created_at, "src": "bob", "dst": "ann", "session": "s"}
    assert message_of({**envelope, "payload": payload_of(one)}) == one


def test_the_list_of_agents_follows_events() -> None:
    normaliser = Normaliser()
    normaliser.know("s", [{"id": "ann", "name": "Ann", "lead": True}])

    def event(kind: str, payload: dict[str, Any]) -> Any:
        return normaliser.read({"type": kind, "session": "s", "id": "x", "src": "x", "ts": "t", "payload": payload})

    assert event("agent.created", {"id": "bob", "name": None}).agents[1] == Peer("bob", None, False)
    assert event("agent.updated", {"id": "ann", "name": "Anna"}).agents[0] == Peer("ann", "Anna", True)
    assert [peer.id for peer in event("agent.reordered", {"agent_ids": ["bob", "ann"]}).agents] == ["bob", "ann"]
    assert [peer.id for peer in event("agent.deleted", {"id": "bob"}).agents] == ["ann"]
    assert event("agent.odd", {"id": "bob"}) is None
    assert event("session.closed", {}) == SessionUpdated("s", "closed")
    assert normaliser.read({"type": "message.send", "id": "x"}) is None
    assert normaliser.read({"type": "events.missed", "session": "s"}) is None
