"""A Weave client of protocol v0, written from the protocol alone: a socket, lines, JSON. It imports nothing of RedKey.

As a script (`python weave.py HOME`) it sends every command to a bus and prints what went wrong.
"""

from __future__ import annotations

import json
import socket
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE_SECONDS = 60.0


class Refused(Exception):
    """The bus answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]


class Link:
    """One connection; lines that are not answers are stored in `heard`."""

    def __init__(self, path: Any, seconds: float = PATIENCE_SECONDS) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(seconds)
        self.socket.connect(str(path))
        self._buffer = b""
        self.heard: list[dict[str, Any]] = []

    def raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def line(self) -> dict[str, Any]:
        """The next line; EOFError if there is none."""
        while b"\n" not in self._buffer:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def tell(self, kind: str, src: str, **fields: Any) -> str:
        """Send a request without waiting; return its id."""
        key = fields.pop("id", None) or str(uuid.uuid4())
        moment = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
        envelope = {"v": fields.pop("v", 0), "type": kind, "id": key, "ts": moment, "src": src, **fields}
        self.raw(json.dumps(envelope, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
        return str(key)

    def answer(self, key: str) -> dict[str, Any]:
        """The answer to a request."""
        while True:
            found = self.line()
            if found.get("corr") != key:
                self.heard.append(found)
                continue
            if found.get("status") == "error":
                raise Refused(found["error"])
            return found

    def ask(self, kind: str, src: str, **fields: Any) -> dict[str, Any]:
        return self.answer(self.tell(kind, src, **fields))

    def take(self, *kinds: str) -> dict[str, Any]:
        """The next line of one of these types that is not an answer."""
        while True:
            for index, one in enumerate(self.heard):
                if one["type"] in kinds:
                    return self.heard.pop(index)
            self.heard.append(self.line())

    def receive(self, agent: str, *, ack: bool = True) -> dict[str, Any]:
        """The next message, confirmed as an existing client does."""
        message = self.take("message.send")
        if ack and message.get("ack", {}).get("mode") == "auto":
            self.tell(
                "message.ack", agent, session=message["session"], corr=message["id"], payload={"acked": message["id"]}
            )
        return message

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def socket_of(home: Path, session: str) -> Path:
    """The socket to which an existing client sends requests about a session."""
    own = home / "sessions" / session / "coord.sock"
    return own if own.exists() else home / "coord.sock"


def join(path: Any, session: str, agent: str, name: str | None = None) -> Link:
    """A long-lived connection of one agent."""
    link = Link(path)
    payload = {"id": agent, "name": name} if name else {"id": agent}
    link.ask("agent.add", agent, session=session, payload=payload)
    return link


def speak_everything(home: Path) -> list[str]:
    """Use every command once; return what failed."""
    seen = []
    main = home / "coord.sock"
    with Link(main) as link:
        session = link.ask("session.create", "codex-cli", payload={"name": "everything"})["session"]
        seen.append("session.create")
    with Link(main) as link:
        listed = link.ask("session.list", "codex-cli")["payload"]["sessions"]
        assert {"id": session, "name": "everything"}.items() <= next(o for o in listed if o["id"] == session).items()
        seen.append("session.list")
    path = socket_of(home, session)
    assert path != main, "an open session has a socket of its own"
    ann, bob = join(path, session, "ann", "Ann"), join(path, session, "bob")
    seen.append("agent.add")
    agents = ann.ask("agent.list", "ann", session=session)["payload"]["agents"]
    assert [one["id"] for one in agents] == ["ann", "bob"]
    seen.append("agent.list")
    bob.ask("agent.update", "bob", session=session, payload={"id": "bob", "name": "Bob"})
    assert ann.take("agent.updated")["payload"]["name"] == "Bob"
    seen.append("agent.update")
    payload = {"text": "hello", "codex": {"sender_name": "Ann", "conversation_id": "c1", "conversation_owner": "ann"}}
    sent = ann.tell("message.send", "ann", session=session, dst="bob", payload=payload)
    ann.answer(sent)
    got = bob.receive("bob")
    assert (got["id"], got["src"], got["dst"], got["payload"]) == (sent, "ann", "bob", payload)
    seen += ["message.send", "message.ack"]
    with Link(path) as link:
        records = link.ask("events.history", "codex-cli", session=session, payload={"limit": 50})["payload"]["records"]
        assert [one["seq"] for one in records] == list(range(1, len(records) + 1))
        seen.append("events.history")
    with Link(path) as link:
        key = link.tell("events.stream", "codex-cli", session=session, payload={"follow": True})
        link.answer(key)
        for record in records:
            found = link.line()
            assert (found["type"], found["corr"], found["payload"]) == ("events.record", key, record)
        ann.ask("message.send", "ann", session=session, dst="bob", payload={"text": "live"})
        assert link.line()["payload"]["envelope"]["payload"] == {"text": "live"}
        seen.append("events.stream")
    bob.ask("agent.remove", "bob", session=session, payload={"id": "bob"})
    seen.append("agent.remove")
    with Link(main) as link:
        link.ask("session.close", "codex-cli", session=session)
        seen.append("session.close")
    with suppress(EOFError):
        ann.take("nothing more")
    ann.close()
    bob.close()
    return seen


if __name__ == "__main__":
    print(json.dumps(speak_everything(Path(sys.argv[1]))))
