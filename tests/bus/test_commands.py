"""Protocol v0 over Unix sockets: every command, as an existing client uses it."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import weave
from tests.harness.running_bus import Running
from tests.harness.weave import Link, Refused


def test_a_client_that_knows_only_the_protocol_speaks_every_command(running: Running) -> None:
    command = [sys.executable, "-I", weave.__file__, str(running.home)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert sorted(json.loads(ended.stdout)) == sorted(
        [
            "session.list",
            "session.create",
            "session.close",
            "agent.list",
            "agent.add",
            "agent.update",
            "agent.remove",
            "message.send",
            "message.ack",
            "events.history",
            "events.stream",
        ]
    )


def test_the_independent_client_imports_nothing_of_the_project() -> None:
    assert "redkey" not in [
        line.split()[1].split(".")[0]
        for line in Path(weave.__file__).read_text().splitlines()
        if line.startswith(("import ", "from "))
    ]


def test_sockets_are_private_to_their_owner(running: Running) -> None:
    session = running.session()
    for path in (running.home / "coord.sock", running.home / "sessions" / session / "coord.sock"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_ISSOCK(path.stat().st_mode)
    assert stat.S_IMODE(running.home.stat().st_mode) == 0o700
    assert stat.S_IMODE((running.home / "bus.db").stat().st_mode) == 0o600


def test_a_session_socket_is_removed_with_its_session(running: Running) -> None:
    session = running.session()
    path = running.home / "sessions" / session / "coord.sock"
    with running.link() as link:
        link.ask("session.close", "codex-cli", session=session)
    assert not path.exists()


def test_a_session_socket_accepts_commands_of_its_session_only(running: Running) -> None:
    one, other = running.session(), running.session()
    with Link(running.home / "sessions" / one / "coord.sock") as link:
        assert link.ask("agent.list", "codex-cli")["payload"] == {"agents": []}
        with pytest.raises(Refused, match="session_mismatch"):
            link.ask("agent.list", "codex-cli", session=other)


def test_a_rename_reaches_all_connections_and_the_stream(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob, running.link() as watcher:
        key = watcher.tell("events.stream", "codex-cli", session=session, payload={"follow": True})
        watcher.answer(key)
        ann.ask("agent.update", "ann", session=session, payload={"id": "ann", "name": "  Ann of Cleves "})
        told = bob.take("agent.updated")
        assert (told["src"], told["session"]) == ("ann", session)
        assert told["payload"]["name"] == "Ann of Cleves"
        while (found := watcher.line())["payload"]["envelope"]["type"] != "agent.updated":
            pass
        assert found["payload"]["envelope"] == told
        listed = bob.ask("agent.list", "bob", session=session)["payload"]["agents"]
        assert listed[0]["name"] == "Ann of Cleves"


def test_a_message_may_be_addressed_by_inbox_topic(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        ann.ask("message.send", "ann", session=session, topic="agent.bob.inbox", payload="plain")
        got = bob.receive("bob")
        assert (got["dst"], got["topic"], got["payload"]) == ("bob", "agent.bob.inbox", "plain")


def test_a_message_to_all_agents_reaches_all_but_its_sender(running: Running) -> None:
    session = running.session()
    links = [running.join(session, f"agent-{number}") for number in range(5)]
    links[0].ask("message.send", "agent-0", session=session, topic="agents", payload={"text": "all"})
    for number, link in enumerate(links[1:], start=1):
        got = link.receive(f"agent-{number}")
        assert (got["dst"], got["payload"]["text"]) == (f"agent-{number}", "all")
    for link in links:
        link.close()


def test_a_message_without_destination_goes_to_the_lead(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        with pytest.raises(Refused, match="no_destination"):
            ann.ask("message.send", "ann", session=session, payload={"text": "anyone?"})
        running.inside(lambda: running.home_bus.bus.update_agent(session, "bob", lambda _: None, name="Bob", lead=True))
        sent = ann.ask("message.send", "ann", session=session, payload={"text": "anyone?"})["payload"]["message_id"]
        got = bob.receive("bob")
        assert (got["src"], got["dst"], got["payload"]["text"]) == ("ann", "bob", "anyone?")
        assert got["payload"]["codex"]["reply_to"] == sent
        assert got["payload"]["codex"]["conversation_id"] == sent


def test_history_gives_the_last_records_in_order(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann, running.join(session, "bob"):
        for number in range(10):
            ann.ask("message.send", "ann", session=session, dst="bob", payload={"text": str(number)})
        records = ann.ask("events.history", "ann", session=session, payload={"limit": 3})["payload"]["records"]
        assert [one["envelope"]["payload"]["text"] for one in records] == ["7", "8", "9"]
        before = ann.ask("events.history", "ann", session=session, payload={"limit": 2, "before": records[0]["seq"]})
        assert [one["envelope"]["payload"]["text"] for one in before["payload"]["records"]] == ["5", "6"]


def test_a_stream_without_follow_ends_at_the_last_record(running: Running) -> None:
    session = running.session()
    with running.join(session, "ann") as ann:
        key = ann.tell("events.stream", "ann", session=session, payload={"follow": False})
        ann.answer(key)
        found = [ann.line(), ann.line(), ann.line()]
        assert [one["type"] for one in found] == ["events.record", "events.record", "events.end"]
        assert found[-1]["payload"] == {"seq": 2}


def test_followers_get_the_end_of_a_session(running: Running) -> None:
    session = running.session()
    with running.link() as watcher, running.join(session, "ann") as ann:
        key = watcher.tell("events.stream", "codex-cli", session=session, payload={"follow": True})
        watcher.answer(key)
        ann.ask("session.close", "ann", session=session)
        kinds = [watcher.line() for _ in range(4)]
        assert [one["payload"].get("envelope", {}).get("type") for one in kinds[:3]] == [
            "session.created",
            "agent.created",
            "session.closed",
        ]
        assert kinds[3]["type"] == "events.end"
        with pytest.raises(EOFError):
            ann.take("nothing more")


def test_history_of_a_closed_session_stays(running: Running) -> None:
    session = running.session()
    with running.link() as link:
        link.ask("session.close", "codex-cli", session=session)
        records = link.ask("events.history", "codex-cli", session=session)["payload"]["records"]
        assert [one["envelope"]["type"] for one in records] == ["session.created", "session.closed"]
        assert link.ask("session.list", "codex-cli")["payload"] == {"sessions": []}


def test_a_message_sent_right_before_the_end_is_delivered_before_it(running: Running) -> None:
    session = running.session()
    with running.link() as watcher, running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        watcher.answer(
            watcher.tell("events.stream", "codex-cli", session=session, payload={"follow": True, "after": 3})
        )
        common = {"v": 0, "ts": "2026-01-01T00:00:00Z", "src": "ann", "session": session}
        last = {**common, "type": "message.send", "id": "last", "dst": "bob", "payload": "words"}
        end = {**common, "type": "session.close", "id": "end"}
        ann.raw(b"".join(json.dumps(one).encode() + b"\n" for one in (last, end)))
        assert [ann.answer(key)["status"] for key in ("last", "end")] == ["ok", "ok"]
        told = [watcher.line() for _ in range(3)]
        kinds = [one["payload"]["envelope"]["type"] for one in told[:2]]
        assert (kinds, told[2]["type"]) == (["message.send", "session.closed"], "events.end")
        assert bob.take("session.closed")["session"] == session
        assert bob.heard[0]["id"] == "last"
