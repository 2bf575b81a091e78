"""Weave v1 beside v0: recorded frames of v1 clients are replayed, and every reply is compared with what they expect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from redkey.bus.weave1 import read_actions
from redkey.errors import BusRefused
from tests.bus.test_http import Caller
from tests.harness.bus_process import BusProcess
from tests.harness.running_bus import Running
from tests.harness.weave import Link

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


def heard(link: Link, wanted: dict[str, Any], known: dict[str, str]) -> dict[str, Any]:
    """The next line that answers the same request as the expected one, or has its type."""
    while True:
        line = link.line()
        if line.get("corr") == wanted["corr"] if "corr" in wanted else line["type"] == wanted["type"]:
            return line


@pytest.mark.parametrize("path", FRAMES, ids=[path.stem for path in FRAMES])
def test_recorded_frames_are_answered(running: Running, path: Path) -> None:
    known: dict[str, str] = {}
    links: dict[str, Link] = {}
    try:
        for number, text in enumerate(path.read_text().splitlines(), start=1):
            step = json.loads(text)
            link = links.get(step["link"]) or links.setdefault(step["link"], running.link())
            if "send" in step:
                link.raw(json.dumps(filled(step["send"], known)).encode() + b"\n")
                continue
            found = heard(link, step["expect"], known)
            assert fits(step["expect"], found, known), f"{path.name}:{number}: {json.dumps(found, indent=1)}"
    finally:
        for link in links.values():
            link.close()


def test_frames_of_every_type_are_recorded() -> None:
    text = "".join(path.read_text() for path in FRAMES)
    for kind in ("action.submit", "action.result", "task.updated", "task.done", "relay.submit", "relay.done"):
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


@pytest.mark.parametrize(
    "actions",
    [None, [], ["x"], [{"type": "message", "dst": "a"}], [{"type": "message", "text": "x"}], [{"type": "jump"}]],
)
def test_invalid_actions_are_refused(actions: Any) -> None:
    with pytest.raises(BusRefused) as refused:
        read_actions(actions)
    assert refused.value.code == "actions_invalid"
