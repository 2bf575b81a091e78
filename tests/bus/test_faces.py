"""Every operation through both faces: the same input, the same results, also after a restart."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from redkey.bus import BusClient
from redkey.bus.commands import COMMANDS, FIELDS
from redkey.bus.envelope import Envelope
from tests.bus.test_http import Caller
from tests.harness.bus_process import BusProcess
from tests.harness.ports import lasting_port
from tests.harness.running_bus import Running
from tests.harness.weave import Link, Refused
from tools.reference.bus_faces import NEWER, differences

PRESENCE = ("agent.online", "agent.away")
CHANGING = {"id", "seq", "ts", "created_at", "updated_at", "session_id", "session", "conversation_id", "message_id"}


def bare(value: Any) -> Any:
    """Remove what differs from run to run; absent counts as null."""
    if isinstance(value, dict):
        found = {name: bare(part) for name, part in value.items() if part is not None}
        return {name: "" if name in CHANGING and isinstance(part, str | int) else part for name, part in found.items()}
    return [bare(part) for part in value] if isinstance(value, list) else value


class Socket:
    """Operations on the socket."""

    def __init__(self, bus: BusProcess | Running) -> None:
        self._bus = bus
        self._links: dict[str, Link] = {"user": bus.link()}

    def _ask(self, kind: str, session: str | None = None, src: str = "user", **payload: Any) -> Any:
        fields = {"payload": payload} | ({"session": session} if session else {})
        try:
            with self._bus.link() as link:
                return link.ask(kind, src, **fields).get("payload")
        except Refused as refused:
            return {"code": refused.code}

    def create(self, **fields: Any) -> Any:
        found = self._ask("session.create", **fields)
        return {**found["session"], "name": found["session"]["name"] or None} if "session" in found else found

    def sessions(self, **query: Any) -> Any:
        return [{**one, "name": one["name"] or None} for one in self._ask("session.list", **query)["sessions"]]

    def session(self, key: str) -> Any:
        found = self._ask("session.get", key)
        return {**found["session"], "name": found["session"]["name"] or None} if "session" in found else found

    def close(self, key: str) -> Any:
        found = self._ask("session.close", key)["session"]
        return {**found, "name": found["name"] or None}

    def agents(self, key: str) -> Any:
        return [{**one, "online": None} for one in self._ask("agent.list", key)["agents"]]

    def add(self, key: str, **fields: Any) -> Any:
        link = self._links[fields["id"]] = self._bus.link()
        return link.ask("agent.add", fields["id"], session=key, payload=fields)["status"] == "ok"

    def change(self, key: str, agent: str, **fields: Any) -> Any:
        return self._as_itself("agent.update", key, agent, **fields)

    def order(self, key: str, ids: list[str]) -> Any:
        found = self._ask("agent.order", key, agent_ids=ids)
        return found.get("code") if found else None

    def remove(self, key: str, agent: str) -> Any:
        return self._as_itself("agent.remove", key, agent)

    def _as_itself(self, kind: str, key: str, agent: str, **fields: Any) -> Any:
        """Change an agent on its connection, or as the person if it has none."""
        if agent not in self._links:
            found = self._ask(kind.replace("update", "change"), key, id=agent, **fields)
            return found.get("code") if found else None
        try:
            self._links[agent].ask(kind, agent, session=key, payload={"id": agent, **fields})
        except Refused as refused:
            return refused.code
        return None

    def send(self, key: str, src: str, dst: str, text: str, **meta: Any) -> str:
        payload = {"text": text, "codex": {"conversation_owner": src, **meta}}
        link = self._links[src]
        manual = {"mode": "manual", "timeout_ms": 60_000}
        sent = link.ask("message.send", src, session=key, dst=dst, payload=payload, ack=manual)
        return str(sent["payload"]["message_id"])

    def mail(self, key: str, agent: str, **query: Any) -> Any:
        return self._ask("message.list", key, agent=agent, **query)["messages"]

    def message(self, key: str, message: str) -> Any:
        found = self._ask("message.get", key, id=message)
        return {**found["message"], "deliveries": None} if "message" in found else found

    def confirm(self, key: str, agent: str, message: str) -> None:
        link = self._links[agent]
        link.tell("message.ack", agent, session=key, payload={"acked": message})
        link.ask("agent.list", agent, session=key)

    def events(self, key: str, **query: Any) -> Any:
        found = self._ask("events.history", key, **query)
        return [one["envelope"] for one in found["records"]] if "records" in found else found

    def follow(self, key: str) -> Any:
        with self._bus.link() as link:
            link.answer(link.tell("events.stream", "user", session=key, payload={"follow": False}))
            return [one["payload"]["envelope"] for one in _to_the_end(link, "events.record")]

    def watch(self) -> Any:
        with self._bus.link() as link:
            link.answer(link.tell("sessions.stream", "user", payload={"follow": False}))
            found = [one["payload"] for one in _to_the_end(link, "sessions.record")]
        return [
            {**one["record"]["envelope"], "shown": {**one["session"], "name": one["session"]["name"] or None}}
            for one in found
        ]

    def hang_up(self) -> None:
        for link in self._links.values():
            link.close()


def _to_the_end(link: Link, kind: str) -> Iterator[dict[str, Any]]:
    """Lines of a stream until the bus ends the connection."""
    while True:
        try:
            line = link.line()
        except EOFError:
            return
        if line["type"] == kind:
            yield line


class Http:
    """The same operations by HTTP."""

    def __init__(self, bus: BusProcess) -> None:
        self._bus, self._caller = bus, Caller(bus)

    def _ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        text = "&".join(f"{name}={value}" for name, value in query.items())
        status, found = self._caller(method, f"{path}?{text}" if text else path, body, Prefer="return=representation")
        return {"code": found["code"]} if status >= 400 else found

    def create(self, **fields: Any) -> Any:
        return self._ask("POST", "/sessions", fields)

    def sessions(self, **query: Any) -> Any:
        return self._ask("GET", "/sessions", **query)

    def session(self, key: str) -> Any:
        return self._ask("GET", f"/sessions/{key}")

    def close(self, key: str) -> Any:
        return self._ask("POST", f"/sessions/{key}/close")

    def agents(self, key: str) -> Any:
        return [{**one, "online": None} for one in self._ask("GET", f"/sessions/{key}/agents")]

    def add(self, key: str, **fields: Any) -> Any:
        return "code" not in self._ask("POST", f"/sessions/{key}/agents", fields)

    def change(self, key: str, agent: str, **fields: Any) -> Any:
        return self._ask("PATCH", f"/sessions/{key}/agents/{agent}", fields).get("code")

    def order(self, key: str, ids: list[str]) -> Any:
        found = self._ask("POST", f"/sessions/{key}/agents/order", {"agent_ids": ids})
        return found.get("code") if isinstance(found, dict) else None

    def remove(self, key: str, agent: str) -> Any:
        found = self._ask("DELETE", f"/sessions/{key}/agents/{agent}")
        return found.get("code") if found else None

    def send(self, key: str, src: str, dst: str, text: str, **meta: Any) -> str:
        body = {"text": text, "agent_ids": [dst], "src": src, "conversation_owner": src, **meta}
        body["ack"] = {"mode": "manual", "timeout_ms": 60_000}
        return str(self._ask("POST", f"/sessions/{key}/messages", body)[0]["id"])

    def mail(self, key: str, agent: str, **query: Any) -> Any:
        return self._ask("GET", f"/sessions/{key}/agents/{agent}/messages", **query)

    def message(self, key: str, message: str) -> Any:
        found = self._ask("GET", f"/sessions/{key}/messages/{message}")
        return {**found, "deliveries": None} if "code" not in found else found

    def confirm(self, key: str, agent: str, message: str) -> None:
        self._ask("POST", f"/sessions/{key}/messages/{message}/ack", {"agent_id": agent})

    def events(self, key: str, **query: Any) -> Any:
        found = self._ask("GET", f"/sessions/{key}/events", **query)
        return [one["payload"]["envelope"] for one in found] if isinstance(found, list) else found

    def follow(self, key: str) -> Any:
        return [one["payload"]["envelope"] for one in self._stream(f"/sessions/{key}/events/stream")]

    def watch(self) -> Any:
        found = self._stream("/sessions/stream")
        return [{**one["payload"]["envelope"], "shown": one["session"]} for one in found]

    def _stream(self, path: str) -> list[Any]:
        connection = http.client.HTTPConnection(urlsplit(self._bus.url).netloc, timeout=30)
        headers = {"Authorization": f"Bearer {self._bus.token}"}
        connection.request("GET", f"/api{path}?follow=false", headers=headers)
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]

    def hang_up(self) -> None: ...


def play(face: Any) -> dict[str, Any]:
    """Run every operation, valid and invalid; return the results by name."""
    seen: dict[str, Any] = {}
    seen["create"] = face.create(id="mine", name="Talk", policy="guarded")
    seen["create again"] = face.create(id="mine", name="other")
    seen["create by name"] = face.create(name="Talk", reuse=True)
    seen["create wrongly"] = face.create(id="../up")
    seen["no session"] = face.session("nowhere")
    seen["add"] = [face.add("mine", id="ann", name="Ann", status="busy", lead=True), face.add("mine", id="bob")]
    seen["change"] = face.change("mine", "bob", status="idle")
    seen["change name"] = face.change("mine", "bob", name="Bob")
    seen["change wrongly"] = [face.change("mine", "bob", name=" "), face.change("mine", "none", name="x")]
    seen["order"] = [face.order("mine", ["bob", "ann"]), face.order("mine", ["bob"])]
    seen["agents"] = face.agents("mine")
    first = face.send("mine", "ann", "bob", "one", conversation_id="c")
    face.send("mine", "ann", "bob", "two", conversation_id="c")
    seen["mail"] = face.mail("mine", "bob")
    seen["mail page"] = face.mail("mine", "bob", limit=1)
    seen["mail after"] = [one["text"] for one in face.mail("mine", "bob", after=seen["mail"][0]["seq"])]
    face.confirm("mine", "bob", first)
    seen["mail left"] = [one["text"] for one in face.mail("mine", "bob")]
    seen["message"] = face.message("mine", first)
    # A kind that this bus does not know is carried as it was sent, and read as `user`; case does not matter.
    kinds = ("hint", "Reply", "")
    sent = [face.send("mine", "ann", "bob", "strange", conversation_id="c", kind=kind) for kind in kinds]
    seen["kinds"] = [face.message("mine", one)["kind"] for one in sent]
    seen["kinds sent"] = [one["payload"]["codex"].get("kind") for one in face.events("mine", limit=3)]
    seen["no message"] = face.message("mine", "none")
    # The person at the machine asks, and is answered.
    face.send("mine", "user", "bob", "you?", conversation_id="q")
    face.send("mine", "bob", "user", "yes", kind="reply", conversation_id="q", conversation_owner="user")
    seen["user is answered"] = [(one["src"], one["dst"], one["text"]) for one in face.mail("mine", "user")]
    face.confirm("mine", "user", face.mail("mine", "user")[0]["id"])
    seen["user has read"] = face.mail("mine", "user")
    seen["events"] = face.events("mine")
    seen["events after"] = face.events("mine", after=2, limit=2)
    seen["events before"] = face.events("mine", before=3)
    seen["events between"] = face.events("mine", after=1, before=3)
    seen["events wait"] = face.events("mine", after=10_000, wait=0.05)
    seen["mail wait"] = face.mail("mine", "user", wait=0.05)
    seen["remove"] = [face.remove("mine", "ann"), face.remove("mine", "none")]
    seen["close"] = face.close("mine")
    seen["close again"] = face.close("mine")
    seen["closed session"] = face.session("mine")
    seen["sessions"] = [face.sessions(), face.sessions(status="closed"), face.sessions(status="all", limit=1)]
    seen["follow"] = face.follow("mine")
    seen["watch"] = face.watch()
    face.hang_up()
    return {name: bare(value) for name, value in seen.items()}


def _without_presence(value: Any) -> Any:
    """Leave out presence, because an agent by HTTP has no connection."""
    if isinstance(value, list):
        kept = [
            one
            for one in value
            if not (isinstance(one, dict) and str(one.get("type")) in ("agent.online", "agent.away"))
        ]
        return [_without_presence(one) for one in kept]
    if isinstance(value, dict):
        return {name: _without_presence(part) for name, part in value.items() if name != "online"}
    return value


def test_both_faces_give_the_same(tmp_path: Path) -> None:
    import tempfile

    seen = {}
    for face in (Socket, Http):
        with tempfile.TemporaryDirectory(prefix="rkbus") as folder, BusProcess(Path(folder) / "weave") as bus:
            seen[face.__name__] = {name: _without_presence(value) for name, value in play(face(bus)).items()}
    table = {name: (value, seen["Http"][name]) for name, value in seen["Socket"].items() if value != seen["Http"][name]}
    assert table == {}


def test_both_faces_take_the_same_fields() -> None:
    assert differences() == {}
    assert FIELDS.keys() == {name for name in COMMANDS if not name.startswith(NEWER)}


class Watched(dict[str, Any]):
    """The fields of a payload, which notes the names that are looked up."""

    def __init__(self, fields: dict[str, Any], names: set[str]) -> None:
        super().__init__(fields)
        self._names = names

    def get(self, name: str, default: Any = None) -> Any:
        self._names.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self._names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._names.add(str(name))
        return super().__contains__(name)


def test_each_command_reads_the_fields_of_the_table_and_no_other(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table of fields is written by hand, and the comparison of the faces relies on it."""
    read: dict[str, set[str]] = {}
    original = Envelope.fields

    def fields(request: Envelope) -> dict[str, Any]:
        return Watched(original(request), read.setdefault(request.type, set()))

    monkeypatch.setattr(Envelope, "fields", fields)
    play(Socket(running))
    # The payload of a message is passed on as it is, and an ack is read without the others.
    named = {name: set(names) for name, names in FIELDS.items() if name not in ("message.send", "message.ack")}
    assert {name: read.get(name, set()) for name in named} == named


def test_a_difference_between_the_faces_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "session.rename", COMMANDS["session.get"])
    monkeypatch.setitem(FIELDS, "agent.add", ("id",))
    assert differences() == {
        "add an agent": ["`lead` by HTTP only", "`name` by HTTP only", "`status` by HTTP only"],
        "session.rename": ["on the socket only"],
    }


# Long polls.


@pytest.fixture(scope="module")
def bus() -> Iterator[BusProcess]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rkbus") as folder, BusProcess(Path(folder) / "weave") as found:
        yield found


def test_a_long_poll_is_answered_as_soon_as_there_is_a_result(bus: BusProcess) -> None:
    ask, session = Caller(bus), bus.session()
    found: list[Any] = []
    with bus.join(session, "ann") as ann:
        ask("POST", f"/sessions/{session}/agents", {"id": "web"})
        poll = f"/sessions/{session}/agents/web/messages?wait=30"
        waiting = threading.Thread(target=lambda: found.append(ask("GET", poll)))
        waiting.start()
        ann.take("agent.online")
        began = time.monotonic()
        ann.ask("message.send", "ann", session=session, dst="web", payload={"text": "now"})
        waiting.join(30)
        assert time.monotonic() - began < 10
        assert [one["text"] for one in found[0][1]] == ["now"]
        with bus.link() as link:
            last = ask("GET", f"/sessions/{session}/events?limit=1")[1][0]["payload"]["seq"]
            key = link.tell("events.history", "x", session=session, payload={"after": last, "wait": 30})
            ann.ask("agent.update", "ann", session=session, payload={"id": "ann", "status": "busy"})
            (record,) = link.answer(key)["payload"]["records"]
            assert record["envelope"]["payload"]["status"] == "busy"
            # A question that waits does not keep the connection from others.
            key = link.tell("message.list", "user", session=session, payload={"wait": 30})
            link.ask("agent.list", "x", session=session)
            ann.ask("message.send", "ann", session=session, dst="user", payload={"text": "done"})
            assert [one["text"] for one in link.answer(key)["payload"]["messages"]] == ["done"]


# Restarts.


def test_the_port_is_the_same_after_a_restart_and_followers_continue(home: Path) -> None:
    # A bus that stops on the usual port, or on one that the kernel drew, may lose it to another test's.
    home.mkdir(mode=0o700)
    (home / "http.port").write_text(str(lasting_port()))
    first = BusProcess(home)
    session = first.session()
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("REDKEY_", "WEAVE_"))}
    command = [sys.executable, "-m", "redkey", "bus", "tail", "--home", str(home), "-n", "1", "-f", "--json"]
    with subprocess.Popen(command, env=clean, stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        assert json.loads(tail.stdout.readline())["envelope"]["type"] == "session.created"
        ask = Caller(first)
        ((key, _),) = ask.events(f"/sessions/{session}/events/stream", 1)
        first.kill()
        with BusProcess(home) as second:
            assert second.url == first.url
            with second.join(session, "ann"):
                assert json.loads(tail.stdout.readline())["envelope"]["type"] == "agent.created"
                # An event source comes back to the same address with its last id.
                ((_, event),) = ask.events(f"/sessions/{session}/events/stream", 1, Last_Event_ID=key)
                assert event["type"] == "agent.created"
            with second.link() as link:
                link.ask("session.close", "x", session=session)
            kinds = [json.loads(line)["envelope"]["type"] for line in tail.stdout]
            assert kinds[-1] == "session.closed"
            assert tail.wait(60) == 0


def test_the_port_of_the_first_start_is_kept(home: Path) -> None:
    with BusProcess(home) as bus:
        assert (home / "http.port").read_text() == bus.url.rpartition(":")[2]


def test_another_port_is_used_if_the_port_is_taken(home: Path) -> None:
    import socket

    home.mkdir(mode=0o700)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (home / "http.port").write_text(str(taken.getsockname()[1]))
        with BusProcess(home) as bus:
            assert not bus.url.endswith(f":{taken.getsockname()[1]}")
            assert Caller(bus)("GET", "/health")[0] == 200


def test_a_stream_that_is_not_followed_ends_for_each_client(bus: BusProcess) -> None:
    session = bus.session()
    with BusClient(bus.home) as client:
        assert [one["envelope"]["type"] for one in client.follow(session, follow=False)] == ["session.created"]
        # And the client goes on.
        assert client.create_session("next") in [one.id for one in client.sessions()]
