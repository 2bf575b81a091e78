"""Unix sockets and HTTP are two faces of one protocol: one script through either gives the same events and states."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.bus.test_http import Caller
from tests.harness.bus_process import BusProcess
from tests.harness.weave import Link

# Presence depends on connections, and an agent by HTTP has none.
PRESENCE = ("agent.online", "agent.away")


class Face(Protocol):
    """The operations that the script needs."""

    def create(self, name: str) -> str: ...
    def add(self, session: str, agent: str, name: str | None) -> None: ...
    def rename(self, session: str, agent: str, name: str) -> None: ...
    def remove(self, session: str, agent: str) -> None: ...
    def send(self, session: str, src: str, dst: str, text: str, kind: str) -> None: ...
    def take(self, session: str, agent: str) -> list[dict[str, Any]]: ...
    def close(self, session: str) -> None: ...


class BySocket:
    """Each agent has its own connection."""

    def __init__(self, bus: BusProcess) -> None:
        self._bus = bus
        self._links: dict[str, Link] = {}

    def create(self, name: str) -> str:
        with self._bus.link() as link:
            return str(link.ask("session.create", "user", payload={"name": name})["session"])

    def add(self, session: str, agent: str, name: str | None) -> None:
        self._links[agent] = link = self._bus.link()
        link.ask("agent.add", agent, session=session, payload={"id": agent, "name": name})

    def rename(self, session: str, agent: str, name: str) -> None:
        self._links[agent].ask("agent.update", agent, session=session, payload={"id": agent, "name": name})

    def remove(self, session: str, agent: str) -> None:
        self._links[agent].ask("agent.remove", agent, session=session, payload={"id": agent})
        self._links.pop(agent).close()

    def send(self, session: str, src: str, dst: str, text: str, kind: str) -> None:
        meta = {"conversation_id": "c", "conversation_owner": src, **({"kind": kind} if kind != "user" else {})}
        self._links[src].ask("message.send", src, session=session, dst=dst, payload={"text": text, "codex": meta})

    def take(self, session: str, agent: str) -> list[dict[str, Any]]:
        link, found = self._links[agent], []
        link.ask("agent.list", agent, session=session)
        while any(one["type"] == "message.send" for one in link.heard):
            found.append(link.receive(agent))
        return found

    def close(self, session: str) -> None:
        with self._bus.link() as link:
            link.ask("session.close", "user", session=session)
        self.hang_up()

    def hang_up(self) -> None:
        for link in self._links.values():
            link.close()


class ByHttp:
    """Every agent uses HTTP requests."""

    def __init__(self, bus: BusProcess) -> None:
        self._ask = Caller(bus)

    def create(self, name: str) -> str:
        return str(self._ask("POST", "/sessions", {"name": name})[1]["id"])

    def add(self, session: str, agent: str, name: str | None) -> None:
        assert self._ask("POST", f"/sessions/{session}/agents", {"id": agent, "name": name})[0] == 201

    def rename(self, session: str, agent: str, name: str) -> None:
        assert self._ask("PATCH", f"/sessions/{session}/agents/{agent}", {"name": name})[0] == 200

    def remove(self, session: str, agent: str) -> None:
        assert self._ask("DELETE", f"/sessions/{session}/agents/{agent}")[0] == 204

    def send(self, session: str, src: str, dst: str, text: str, kind: str) -> None:
        body = {"text": text, "agent_ids": [dst], "src": src, "kind": kind, "conversation_id": "c"}
        assert self._ask("POST", f"/sessions/{session}/messages", {**body, "conversation_owner": src})[0] == 202

    def take(self, session: str, agent: str) -> list[dict[str, Any]]:
        waiting = self._ask("GET", f"/sessions/{session}/agents/{agent}/messages")[1]
        found = []
        for one in waiting:
            self._ask("POST", f"/sessions/{session}/messages/{one['id']}/ack", {"agent_id": agent})
            event = self._ask("GET", f"/sessions/{session}/events")[1]
            found += [e["payload"]["envelope"] for e in event if e["payload"]["envelope"]["id"] == one["id"]]
        return found

    def close(self, session: str) -> None:
        assert self._ask("POST", f"/sessions/{session}/close")[0] == 200

    def hang_up(self) -> None: ...


def play(face: Face, look: BusProcess) -> dict[str, Any]:
    """Run the script; return what both faces show afterwards."""
    session = face.create("parity")
    face.add(session, "ann", "Ann")
    face.add(session, "bob", None)
    face.send(session, "ann", "bob", "question", "user")
    face.send(session, "ann", "bob", "second", "user")
    face.rename(session, "bob", "Bob")
    taken = face.take(session, "bob")
    face.send(session, "bob", "ann", "answer", "reply")
    face.add(session, "eve", None)
    face.remove(session, "eve")
    taken += face.take(session, "ann")
    ask = Caller(look)
    states = ask("GET", f"/sessions/{session}/agents")[1]
    with look.link() as link:
        listed = link.ask("agent.list", "x", session=session)["payload"]["agents"]
    face.close(session)
    with look.link() as link:
        records = link.ask("events.history", "x", session=session)["payload"]["records"]
    events = ask("GET", f"/sessions/{session}/events")[1]
    assert [one["payload"] for one in events] == records, "both faces show the same records"
    assert [one for _, one in ask.events(f"/sessions/{session}/events/stream", len(events))] == events
    return {
        "taken": [_bare(one) for one in taken],
        "records": [_bare(one["envelope"]) for one in records if one["envelope"]["type"] not in PRESENCE],
        "states": [{**one, "online": None} for one in states],
        "listed": [{**one, "online": None} for one in listed],
        "session": {**ask("GET", f"/sessions/{session}")[1], "id": "", "created_at": "", "updated_at": ""},
    }


def _bare(envelope: dict[str, Any]) -> dict[str, Any]:
    """Remove from an envelope what differs from run to run."""
    payload = envelope.get("payload")
    if envelope["type"].startswith("session.") and isinstance(payload, dict):
        payload = {**payload, "id": ""}
    if envelope["type"].startswith("agent.") and isinstance(payload, dict):
        payload = {**payload, "online": None}
    return {**envelope, "id": "", "ts": "", "session": "", "payload": payload}


def test_the_same_script_gives_the_same_events_and_states(home: Path) -> None:
    with BusProcess(home) as bus:
        assert play(BySocket(bus), bus) == play(ByHttp(bus), bus)


@pytest.mark.parametrize("face", [BySocket, ByHttp])
def test_changes_through_one_face_are_on_both_after_a_restart(home: Path, face: Any) -> None:
    with BusProcess(home) as bus:
        one = face(bus)
        session = one.create("kept")
        one.add(session, "ann", "Ann")
        one.add(session, "bob", None)
        one.send(session, "ann", "bob", "later", "user")
        bus.kill()
        one.hang_up()
    with BusProcess(home) as bus:
        waiting = Caller(bus)("GET", f"/sessions/{session}/agents/bob/messages")[1]
        assert [one["text"] for one in waiting] == ["later"]
        with bus.join(session, "bob") as bob:
            assert bob.receive("bob")["payload"]["text"] == "later"
