"""Weave v1 beside v0: frames written from the protocol are replayed between the bus and a strict model of its clients.

In `weave_v1`, a step sends a line or expects one; `hears` is what the model of the client makes of it. What no step
expects must not be heard by anybody.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from redkey.bus.runtime.conduct import TURNS
from redkey.bus.runtime.weave1_fields import CARRIED
from redkey.bus.weave1 import read_actions
from redkey.errors import BusRefused
from tests.bus.test_http import Caller
from tests.harness.bus_process import BusProcess
from tests.harness.running_bus import Running
from tests.harness.weave import Link, Refused
from tests.harness.weave1 import Receiver

FRAMES = sorted(Path(__file__).with_name("weave_v1").glob("*.jsonl"))


def filled(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: filled(part, known) for name, part in value.items()}
    if isinstance(value, list):
        return [filled(part, known) for part in value]
    return known.get(value, value) if isinstance(value, str) and value.startswith("$") else value


def fits(wanted: Any, found: Any, known: dict[str, str]) -> bool:
    """Whether all expected fields are present; `$name` takes the first value and must match it afterwards."""
    if isinstance(wanted, str) and wanted.startswith("$"):
        return isinstance(found, str) and known.setdefault(wanted, found) == found
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            name in found and fits(part, found[name], known) for name, part in wanted.items()
        )
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(wanted) == len(found)
        return same and all(fits(one, other, known) for one, other in zip(wanted, found, strict=True))
    return bool(wanted == found)


class Seat:
    """One connection of a replay. A client of v1 takes every line as the model does, and confirms like it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.receiver: Receiver | None = None
        # Lines that no step has expected yet, and what the client hears of them.
        self.lines: list[tuple[dict[str, Any], list[Any]]] = []

    def send(self, frame: dict[str, Any]) -> None:
        if frame["v"] and self.receiver is None:
            self.receiver = Receiver()
        if self.receiver is not None:
            self.receiver.sends(frame)
        self.link.raw(json.dumps(frame).encode() + b"\n")

    def expect(self, wanted: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """The next line that answers the same request as the expected one, or has its type."""
        name = "corr" if "corr" in wanted else "type"
        while True:
            for place, (line, _) in enumerate(self.lines):
                if line.get(name) == wanted[name] and (name == "corr" or "status" not in line):
                    return self.lines.pop(place)
            self.lines.append(self._read())

    def unexpected(self) -> list[dict[str, Any]]:
        """Return what this client was sent and no step has expected, after everything under way has arrived."""
        self.send({"v": int(self.receiver is not None), "type": "session.list", "id": "last", "ts": "t", "src": "x"})
        self.expect({"corr": "last"})
        if self.receiver is not None:
            return [line for line, words in self.lines if words]
        return [line for line, _ in self.lines if line["type"] in CARRIED or ("payload" in line and "dst" in line)]

    def _read(self) -> tuple[dict[str, Any], list[Any]]:
        line = self.link.line()
        if self.receiver is None:
            return line, []
        words, confirmation = self.receiver.takes(line)
        if confirmation is not None:
            self.link.raw(json.dumps(confirmation).encode() + b"\n")
        return line, words


@pytest.mark.parametrize("path", FRAMES, ids=[path.stem for path in FRAMES])
def test_frames_of_the_protocol_are_answered_and_heard_by_a_strict_client(running: Running, path: Path) -> None:
    known: dict[str, str] = {}
    seats: dict[str, Seat] = {}
    try:
        for number, text in enumerate(path.read_text().splitlines(), start=1):
            step = json.loads(text)
            seat = seats.get(step["link"]) or seats.setdefault(step["link"], Seat(running.link()))
            if "send" in step:
                seat.send(filled(step["send"], known))
                continue
            line, words = seat.expect(step["expect"])
            where = f"{path.name}:{number}: "
            assert fits(step["expect"], line, known), where + json.dumps(line, indent=1)
            if "hears" in step:
                assert fits(step["hears"], words, known), where + json.dumps(words, indent=1)
            elif seat.receiver is not None:
                assert bool(words) == ("corr" not in step["expect"]), where + f"{words} of {line}"
        assert {name: found for name, seat in seats.items() if (found := seat.unexpected())} == {}
    finally:
        for seat in seats.values():
            seat.link.close()


def test_there_are_frames_of_every_type() -> None:
    text = "".join(path.read_text() for path in FRAMES)
    for kind in (*CARRIED, "relay.submit"):
        assert f'"{kind}"' in text


def test_actions_wait_for_an_agent_that_is_away_and_are_read_by_http(home: Path) -> None:
    with BusProcess(home) as bus:
        ask, session = Caller(bus), bus.session()
        bus.join(session, "bob").close()
        with bus.join(session, "ann") as ann:
            actions = [{"type": "message", "dst": "bob", "text": "later", "action_id": "a", "action_index": 0}]
            line = {"v": 1, "type": "action.submit", "id": "s", "ts": "t", "src": "ann", "session": session}
            ann.raw(json.dumps({**line, "payload": {"group_id": "g", "actions": actions}}).encode() + b"\n")
            assert ann.answer("s")["payload"]["status"] == "accepted"
        (mail,) = ask("GET", f"/sessions/{session}/agents/bob/messages")[1]
        assert (mail["src"], mail["text"], mail["kind"]) == ("ann", "later", "user")
        bus.kill()
    with BusProcess(home) as bus, bus.join(session, "bob") as bob:
        got = bob.receive("bob")
        assert (got["v"], got["payload"]["text"]) == (0, "later")


def test_a_guarded_session_applies_its_rules_to_actions(home: Path) -> None:
    with Running(home) as running:
        with running.link() as link:
            session = str(link.ask("session.create", "x", payload={"policy": "guarded"})["session"])
        with running.join(session, "ann") as ann, running.join(session, "bob") as bob, running.join(session, "cid"):

            def submit(link: Link, src: str, key: str, **context: str) -> Any:
                action = {"type": "message", "dst": "cid", "text": "go", "kind": "user"}
                payload = {"group_id": key, "actions": [action], "context": context}
                line = {"v": 1, "type": "action.submit", "id": key, "ts": "t", "src": src, "session": session}
                link.raw(json.dumps({**line, "payload": payload}).encode() + b"\n")
                return link.answer(key)["payload"]["failures"]

            assert submit(ann, "ann", "g1", context_id="c", owner_id="ann") == []
            (failure,) = submit(bob, "bob", "g2", context_id="c", owner_id="bob")
            assert failure["code"] == "not_owner"

            def ask(link: Link, kind: str, src: str, payload: Any, **fields: str) -> Any:
                return link.ask(kind, src, v=1, session=session, payload=payload, **fields)

            foreign = {"text": "stop", "context_id": "c", "owner_id": "ann"}
            for kind in ("message.send", "message.created"):
                with pytest.raises(Refused, match="not_owner"):
                    ask(bob, kind, "bob", foreign, dst="cid")
                ask(bob, kind, "bob", {**foreign, "kind": "reply"}, dst="cid")
            # Results and the end of a relay inform; they begin no conversation and are never refused.
            for number in range(TURNS + 2):
                result = {"group_id": "g1", "action_id": str(number), "action_index": 0, "status": "completed"}
                ask(bob, "action.result", "bob", result, dst="ann")
                ask(ann, "task.updated", "ann", {"task_id": str(number), "status": "running"}, dst="bob")
            ask(ann, "relay.submit", "ann", {"relay_id": "r", "done": {"summary": "shipped"}})
            ended = ann.take("relay.done")
            assert (ended["src"], ended["dst"], ended["payload"]["summary"]) == ("bus", "ann", "shipped")


@pytest.mark.parametrize(
    "actions",
    [None, [], ["x"], [{"type": "message", "dst": "a"}], [{"type": "message", "text": "x"}], [{"type": "jump"}]],
)
def test_invalid_actions_are_refused(actions: Any) -> None:
    with pytest.raises(BusRefused) as refused:
        read_actions(actions)
    assert refused.value.code == "actions_invalid"
