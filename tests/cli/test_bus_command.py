"""`redkey bus`: sessions, agents, send, tail and chat, as processes on a real bus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.acts import until
from tests.harness.running_bus import Running


@pytest.fixture
def running() -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="rkbus") as folder, Running(Path(folder) / "weave") as found:
        yield found


def command(home: Path, *arguments: str) -> tuple[list[str], dict[str, str]]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("REDKEY_")}
    return [sys.executable, "-m", "redkey", "bus", *arguments], {**clean, "WEAVE_HOME": str(home), "USER": "me"}


def run(running: Running, *arguments: str, text: str = "", code: int = 0) -> str:
    line, environment = command(running.home, *arguments)
    ended = subprocess.run(line, env=environment, input=text, capture_output=True, text=True, timeout=60)
    assert ended.returncode == code, ended.stderr
    return ended.stdout if code == 0 else ended.stderr


def test_sessions_are_made_listed_and_closed(running: Running) -> None:
    assert run(running, "sessions") == ""
    made = run(running, "sessions", "--create", "release")
    assert made.split()[1] == "release"
    assert run(running, "sessions") == made
    assert json.loads(run(running, "sessions", "--json")) == {"id": made.split()[0], "name": "release"}
    run(running, "sessions", "--close", "release")
    assert run(running, "sessions") == ""


def test_a_message_is_sent_and_an_answer_waited_for(running: Running) -> None:
    session = running.session()
    with running.join(session, "worker", "Worker") as worker:
        assert run(running, "agents").split() == ["worker", "Worker", "online"]
        key = run(running, "send", "Worker", "please look").strip()
        got = worker.receive("worker")
        assert (got["id"], got["payload"]["text"]) == (key, "please look")
        line, environment = command(running.home, "send", "worker", "--wait", "30", "and?")
        with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True) as waiting:
            asked = worker.receive("worker")
            meta = {**asked["payload"]["codex"], "kind": "reply"}
            worker.ask(
                "message.send", "worker", session=session, dst=asked["src"], payload={"text": "yes", "codex": meta}
            )
            assert waiting.communicate(timeout=60)[0] == "yes\n"
    # Who only came to send is gone again; the bus hears of both ends when it reads from their sockets.
    until(lambda: run(running, "agents").split() == ["worker", "Worker", "away"])


def test_only_an_answer_ends_the_wait(running: Running) -> None:
    session = running.session()
    with running.join(session, "worker") as worker:
        line, environment = command(running.home, "send", "worker", "--wait", "60", "and?")
        with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True) as waiting:
            asked = worker.receive("worker")
            for text, codex in (
                ("the build began", {**asked["payload"]["codex"], "kind": "system"}),
                ("of something else", {"conversation_id": "other", "conversation_owner": "worker"}),
                # A simple client knows no conversations.
                ("yes", {}),
            ):
                payload = {"text": text, "codex": codex}
                worker.ask("message.send", "worker", session=session, dst=asked["src"], payload=payload)
            assert waiting.communicate(timeout=60)[0] == "yes\n"


def test_a_destination_is_a_name_in_any_case_and_all_means_all_other_agents(running: Running) -> None:
    session = running.session()
    with running.join(session, "w-1", "Worker") as worker:
        run(running, "send", "WORKER", "by name")
        run(running, "send", "all", "to all")
        assert [worker.receive("w-1")["payload"]["text"] for _ in range(2)] == ["by name", "to all"]
        assert "agents here: w-1" in run(running, "send", "workr", "x", code=2)
        with running.join(session, "all"):
            assert "has the id or name 'all'" in run(running, "send", "all", "x", code=2)
        with running.join(session, "w-2", "Worker"):
            assert "matches 2 agents; use an id: w-1, w-2" in run(running, "send", "Worker", "x", code=2)


def test_the_last_records_are_shown_and_followed(running: Running) -> None:
    session = running.session("talk")
    with running.join(session, "ann") as ann, running.join(session, "bob"):
        ann.ask("message.send", "ann", session=session, dst="bob", payload={"text": "one\x1b[2J"})
        lines = run(running, "tail", "--session", "talk", "-n", "2").splitlines()
        assert lines[-1].endswith("ann > bob (user): one\\x1b[2J")
        line, environment = command(running.home, "tail", "-n", "1", "-f", "--json")
        with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None
            assert "one" in following.stdout.readline()
            ann.ask("message.send", "ann", session=session, dst="bob", payload={"text": "two"})
            assert "two" in following.stdout.readline()
            ann.ask("session.close", "ann", session=session)
            assert json.loads(following.stdout.readline())["envelope"]["type"] == "session.closed"
            assert following.wait(60) == 0


def test_a_chat_sends_what_mentions_and_shows_what_comes(running: Running) -> None:
    session = running.session()
    with running.join(session, "bob", "Bob") as bob:
        line, environment = command(running.home, "chat", "--as", "me", "--name", "Me")
        pipe = subprocess.PIPE
        with subprocess.Popen(line, env=environment, stdin=pipe, stdout=pipe, text=True, bufsize=1) as chat:
            assert chat.stdin is not None
            assert chat.stdout is not None
            assert "You are me" in chat.stdout.readline()
            print("nobody in particular", file=chat.stdin)
            assert "mention an agent" in chat.stdout.readline()
            print("#Bob hello", file=chat.stdin)
            got = bob.receive("bob")
            assert (got["src"], got["payload"]["text"]) == ("me", "#Bob hello")
            assert got["payload"]["codex"]["conversation_owner"] == "me"
            assert chat.stdout.readline() == "-> Bob\n"
            print("and again", file=chat.stdin)
            assert bob.receive("bob")["payload"]["text"] == "and again"
            assert chat.stdout.readline() == "-> Bob\n"
            payload = {"text": "hi\x07", "codex": {"sender_name": "Bob", "kind": "reply"}}
            bob.ask("message.send", "bob", session=session, dst="me", payload=payload)
            assert chat.stdout.readline() == "Bob: hi\\x07\n"
            print("/name Myself", file=chat.stdin)
            assert bob.take("agent.updated")["payload"]["name"] == "Myself"
            print("/quit", file=chat.stdin)
            assert chat.wait(60) == 0


def test_a_chat_with_a_model_relays(running: Running, tmp_path: Path) -> None:
    program = tmp_path / "model.py"
    program.write_text(
        "import json, sys\n"
        "asked = json.load(sys.stdin)\n"
        "done = {'intent': 'task_done', 'summary': 'they said ' + asked['text']}\n"
        "go = {'intent': 'message_agent', 'dst': 'bob', 'payload': {'input': {'text': 'go'}}}\n"
        "print(json.dumps(done if asked.get('sender') else go))\n"
    )
    session = running.session()
    with running.join(session, "bob") as bob:
        line, environment = command(running.home, "chat", "--as", "me", "--model", f"{sys.executable} {program}")
        pipe = subprocess.PIPE
        with subprocess.Popen(line, env=environment, stdin=pipe, stdout=pipe, text=True, bufsize=1) as chat:
            assert chat.stdin is not None
            assert chat.stdout is not None
            chat.stdout.readline()
            print("#bob please", file=chat.stdin)
            got = bob.receive("bob")
            assert got["payload"]["text"] == "go"
            assert chat.stdout.readline() == "-> bob: go\n"
            meta = {**got["payload"]["codex"], "kind": "reply", "parent_message_id": got["id"]}
            bob.ask("message.send", "bob", session=session, dst="me", payload={"text": "ok", "codex": meta})
            assert chat.stdout.readline() == "they said ok\n"
            print("/quit", file=chat.stdin)
            assert chat.wait(60) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("agents",), 2, "no session is open; create one"),
        (
            ("send", "nobody", "x"),
            2,
            "no agent of the session has the id or name 'nobody'; the session has no agents yet",
        ),
        (("agents", "--session", "none"), 2, "no open session has the id or name 'none'"),
        (("sessions", "--create", "\x07"), 1, "name_invalid"),
        (("send", "x", ""), 2, "the text is empty"),
    ],
)
def test_a_wrong_use_is_told(running: Running, arguments: tuple[str, ...], code: int, said: str) -> None:
    assert said in run(running, *arguments, code=code)


def test_where_no_bus_is_that_is_said(tmp_path: Path) -> None:
    line, environment = command(tmp_path, "sessions")
    ended = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert "no bus answers" in ended.stderr
    assert "[no_bus]" in ended.stderr
