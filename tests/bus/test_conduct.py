"""The rules of conduct: loops end and a conversation has one owner, in clients and in guarded sessions."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from redkey.bus import AsyncBusClient, BusClient
from redkey.bus.log import APPLICATION_ID
from redkey.bus.runtime.conduct import CHAIN_LIMIT, TURN_SECONDS, TURNS, Conduct
from redkey.bus.runtime.events import Message
from redkey.errors import BusRefused
from tests.bus.test_http import Caller
from tests.harness.bus_process import BusProcess
from tests.harness.running_bus import Running
from tests.harness.weave import Link, Refused

SendAs = Callable[..., str]


class Guarded:
    """A guarded session with two agents, reached through one of the faces."""

    def __init__(self, bus: BusProcess, face: str, policy: str | None = "guarded") -> None:
        self.ask, self._face = Caller(bus), face
        given = {"policy": policy} if policy else {}
        if face == "socket":
            with bus.link() as link:
                self.session = str(link.ask("session.create", "x", payload=given)["session"])
        else:
            self.session = str(self.ask("POST", "/sessions", given)[1]["id"])
        self._links: dict[str, Link] = {}
        for agent in ("ann", "bob", "cid"):
            if face == "socket":
                self._links[agent] = bus.join(self.session, agent)
            else:
                self.ask("POST", f"/sessions/{self.session}/agents", {"id": agent})

    def send(self, src: str, dst: str, kind: str = "user", **meta: str) -> str:
        """Send a message; its id, or AssertionError with the code of a refusal."""
        if self._face == "socket":
            try:
                payload = {"text": "words", "codex": {"kind": kind, **meta}}
                fields = {"session": self.session, "dst": dst, "payload": payload}
                return str(self._links[src].ask("message.send", src, **fields)["payload"]["message_id"])
            except Refused as refused:
                raise AssertionError(refused.code) from None
        body = {"text": "words", "agent_ids": [dst], "src": src, "kind": kind, **meta}
        status, found = self.ask("POST", f"/sessions/{self.session}/messages", body, Prefer="return=representation")
        assert status == 202, found["code"]
        return str(found[0]["id"])

    def refusals(self) -> list[dict[str, Any]]:
        # A refusal is answered before its event is durable; what is accepted after it is durable after it.
        self.send("cid", "ann", "system")
        events = self.ask("GET", f"/sessions/{self.session}/events")[1]
        return [one["payload"]["envelope"]["payload"] for one in events if one["type"] == "message.refused"]

    def close(self) -> None:
        for link in self._links.values():
            link.close()


@pytest.fixture(scope="module")
def bus() -> Iterator[BusProcess]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rkbus") as folder, BusProcess(Path(folder) / "weave") as found:
        yield found


@pytest.fixture(params=["socket", "http"])
def talk(bus: BusProcess, request: pytest.FixtureRequest) -> Iterator[Guarded]:
    found = Guarded(bus, request.param)
    yield found
    found.close()


def test_a_reply_does_not_answer_a_reply(talk: Guarded) -> None:
    first = talk.send("ann", "bob", conversation_id="c", conversation_owner="ann")
    about = {"conversation_id": "c", "conversation_owner": "ann"}
    answer = talk.send("bob", "ann", "reply", parent_message_id=first, **about)
    for _ in range(3):
        with pytest.raises(AssertionError, match="loop_stopped"):
            talk.send("ann", "bob", "reply", parent_message_id=answer, **about)
        with pytest.raises(AssertionError, match="loop_stopped"):
            talk.send("ann", "bob", "reply", **about)
    # It is reported once, however often it is retried.
    (told,) = talk.refusals()
    assert (told["src"], told["dst"], told["code"], told["conversation_id"]) == ("ann", "bob", "loop_stopped", "c")
    # The owner goes on by asking again.
    talk.send("ann", "bob", **about)


def test_a_chain_of_answers_ends_at_its_limit(talk: Guarded) -> None:
    key = talk.send("ann", "bob")
    for number in range(CHAIN_LIMIT):
        src, dst = ("bob", "ann") if number % 2 == 0 else ("ann", "bob")
        key = talk.send(src, dst, parent_message_id=key)
    with pytest.raises(AssertionError, match="loop_stopped"):
        talk.send("bob", "ann", parent_message_id=key)


def test_two_agents_that_keep_starting_conversations_in_turn_are_stopped(talk: Guarded) -> None:
    for number in range(TURNS):
        talk.send(*(("ann", "bob") if number % 2 == 0 else ("bob", "ann")))
    with pytest.raises(AssertionError, match="loop_stopped"):
        talk.send("ann", "bob")
    # Others talk on, and so may they by answering.
    talk.send("ann", "cid")


def test_a_conversation_has_one_owner(talk: Guarded) -> None:
    first = talk.send("ann", "bob", conversation_id="c", conversation_owner="ann")
    with pytest.raises(AssertionError, match="not_owner"):
        talk.send("bob", "cid", conversation_id="c", conversation_owner="bob")
    with pytest.raises(AssertionError, match="conversation_owned"):
        talk.send("bob", "ann", "reply", conversation_id="c", conversation_owner="bob", parent_message_id=first)
    assert [one["code"] for one in talk.refusals()] == ["not_owner", "conversation_owned"]


def test_only_the_owner_follows_up_and_a_target_replies(talk: Guarded) -> None:
    about = {"conversation_id": "c", "conversation_owner": "ann"}
    first = talk.send("ann", "bob", **about)
    for kind in ("user", "control"):
        with pytest.raises(AssertionError, match="not_owner"):
            talk.send("cid", "bob", kind, **about)
    talk.send("bob", "ann", "reply", parent_message_id=first, **about)
    talk.send("ann", "bob", **about)
    # A conversation that has the id of its first message is owned like any other.
    plain = talk.send("ann", "bob")
    with pytest.raises(AssertionError, match="not_owner"):
        talk.send("cid", "bob", conversation_id=plain, conversation_owner="ann")


@pytest.mark.parametrize("face", ["socket", "http"])
def test_an_open_session_delivers_every_message(bus: BusProcess, face: str) -> None:
    talk = Guarded(bus, face, policy=None)
    first = talk.send("ann", "bob", conversation_id="c", conversation_owner="ann")
    answer = talk.send("bob", "ann", "reply", conversation_id="c", conversation_owner="bob", parent_message_id=first)
    talk.send("ann", "bob", "reply", parent_message_id=answer)
    talk.send("cid", "bob", conversation_id="c", conversation_owner="cid")
    assert talk.refusals() == []
    talk.close()


def test_an_unknown_policy_is_refused(bus: BusProcess) -> None:
    with bus.link() as link, pytest.raises(Refused, match="policy_invalid"):
        link.ask("session.create", "x", payload={"policy": "strict"})
    assert Caller(bus)("POST", "/sessions", {"policy": "strict"})[1]["code"] == "body_invalid"


def test_owners_and_chains_survive_a_restart(home: Path) -> None:
    about = {"conversation_id": "c", "conversation_owner": "ann"}
    with BusProcess(home) as bus:
        talk = Guarded(bus, "http")
        first = talk.send("ann", "bob", **about)
        answer = talk.send("bob", "ann", "reply", parent_message_id=first, **about)
        bus.kill()
    with BusProcess(home) as bus:
        talk.ask = Caller(bus)
        with pytest.raises(AssertionError, match="not_owner"):
            talk.send("cid", "bob", conversation_id="c", conversation_owner="cid")
        with pytest.raises(AssertionError, match="loop_stopped"):
            talk.send("ann", "bob", "reply", parent_message_id=answer, **about)


# The clients.


def old_worker(home: Path, session: str, agent: str, sent: list[str]) -> None:
    """Answer every message, as an example in earlier docs did, until asked to stop."""
    with BusClient(home) as client:
        client.join(session, agent)
        while (message := client.receive(timeout=30)) is not None and message.text != "stop":
            try:
                client.send(message.src, f"Done: {message.text}"[:100], kind="reply", reply_to=message)
            except BusRefused as refused:
                sent.append(refused.code)
                return
            sent.append("sent")


@pytest.mark.parametrize("policy", ["guarded", "open"])
def test_two_workers_that_answer_everything_stop(running: Running, policy: str) -> None:
    with running.link() as link:
        session = str(link.ask("session.create", "x", payload={"policy": policy})["session"])
    sent: list[str] = []
    workers = [threading.Thread(target=old_worker, args=(running.home, session, key, sent)) for key in ("ann", "bob")]
    with running.join(session, "cid") as cid:
        for agent, worker in zip(("ann", "bob"), workers, strict=True):
            running.join(session, agent).close()
            worker.start()
        meta = {"conversation_id": "c", "conversation_owner": "cid"}
        # A question that names bob as the one to be answered begins the game between the two.
        asked = cid.ask("message.send", "cid", session=session, dst="ann", payload={"text": "go", "codex": meta})
        assert asked["status"] == "ok"
        assert cid.receive("cid")["payload"]["text"] == "Done: go"
        cid.ask("message.send", "cid", session=session, dst="bob", payload={"text": "go", "codex": {"kind": "reply"}})
        for agent in ("ann", "bob"):
            cid.ask("message.send", "cid", session=session, dst=agent, payload={"text": "stop"})
    for worker in workers:
        worker.join(30)
    assert sorted(sent) == ["loop_stopped", "sent"]


def test_both_clients_answer_only_what_asks_for_an_answer(running: Running) -> None:
    with BusClient(running.home) as ann, BusClient(running.home) as bob:
        session = ann.create_session("talk")
        ann.join(session, "ann")
        bob.join(session, "bob")
        ann.send("bob", "question")
        question = bob.receive(30)
        assert question is not None
        sent = bob.reply(question, "answer")
        answer = ann.receive(30)
        assert sent is not None
        assert answer is not None
        assert (answer.id, answer.kind, answer.conversation_id) == (sent.id, "reply", question.conversation_id)
        assert ann.reply(answer, "thanks") is None
        with pytest.raises(BusRefused, match="a reply must not answer a reply"):
            ann.send("bob", "thanks", kind="reply", reply_to=answer)
        # The owner follows up, and an answer without a kind is a reply.
        ann.send("bob", "and now?", reply_to=answer)
        more = bob.receive(30)
        assert more is not None
        assert (more.kind, bob.send("ann", "now too", reply_to=more).kind) == ("user", "reply")
        with pytest.raises(BusRefused, match="only ann may follow up"):
            bob.send("ann", "do this", kind="user", reply_to=more)

    async def script() -> None:
        async with AsyncBusClient(running.home) as cid, AsyncBusClient(running.home) as dan:
            await cid.join(session, "cid")
            await dan.join(session, "dan")
            await cid.send("dan", "question")
            question = await dan.receive()
            await dan.reply(question, "answer")
            answer = await cid.receive()
            assert await cid.reply(answer, "thanks") is None

    asyncio.run(script())


def test_two_scripts_that_start_conversations_in_turn_are_stopped_by_their_clients(running: Running) -> None:
    session = running.session()
    with BusClient(running.home) as ann, BusClient(running.home) as bob:
        ann.join(session, "ann")
        bob.join(session, "bob")
        ann.send("bob", "0")
        count = 1
        code = ""
        while not code:
            client, other = (bob, "ann") if count % 2 else (ann, "bob")
            assert client.receive(30) is not None
            try:
                client.send(other, str(count))
                count += 1
            except BusRefused as refused:
                code = refused.code
        assert (code, count) == ("loop_stopped", TURNS)


def test_slow_turns_are_no_loop() -> None:
    conduct, pace = Conduct(), TURN_SECONDS / (TURNS - 1)
    for number in range(TURNS * 3):
        src, dst = ("ann", "bob") if number % 2 == 0 else ("bob", "ann")
        one = Message(
            id=str(number), session_id="s", src=src, dst=dst, kind="user", text="", conversation_id=str(number),
            conversation_owner=src, created_at="t",
        )  # fmt: skip
        assert conduct.judge(one, number * pace) is None
        conduct.note(one, number * pace)


# The file.


def columns(connection: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: [row[1:] for row in connection.execute(f"PRAGMA table_info({name})")] for name in sorted(tables)}


FORMAT_1 = """
CREATE TABLE session (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT,
    status TEXT NOT NULL DEFAULT 'open', created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    workspace TEXT NOT NULL, ledger_cursor INTEGER);
CREATE TABLE agent (number INTEGER PRIMARY KEY, session INTEGER NOT NULL, id TEXT NOT NULL, name TEXT,
    lead INTEGER NOT NULL, status TEXT, place INTEGER NOT NULL, UNIQUE (session, id));
CREATE TABLE record (position INTEGER PRIMARY KEY, session INTEGER NOT NULL, ts TEXT NOT NULL, id TEXT NOT NULL,
    type TEXT NOT NULL, envelope BLOB NOT NULL);
CREATE UNIQUE INDEX record_of_message ON record (session, id);
CREATE TABLE session_record (number INTEGER PRIMARY KEY AUTOINCREMENT, position INTEGER NOT NULL);
CREATE TABLE pending (agent INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (agent, seq)) WITHOUT ROWID;
CREATE TABLE answer (scope TEXT NOT NULL, key TEXT NOT NULL, request BLOB NOT NULL, status INTEGER NOT NULL,
    body BLOB NOT NULL, at TEXT NOT NULL, PRIMARY KEY (scope, key)) WITHOUT ROWID;
CREATE INDEX answer_at ON answer (at);
INSERT INTO session VALUES (1, 'old', 'kept', 'open', 't', 't', '', NULL);
INSERT INTO agent VALUES (1, 1, 'bob', 'Bob', 1, NULL, 1);
INSERT INTO record VALUES (1 << 40 | 1, 1, '2026-01-01T00:00:00.000Z', 'm', 'message.send',
    CAST('{"v":0,"type":"message.send","id":"m","ts":"t","src":"ann","dst":"bob","session":"old","payload":"words"}'
    AS BLOB));
INSERT INTO pending VALUES (1, 1);
"""


def test_a_file_of_the_first_format_is_migrated(home: Path) -> None:
    home.mkdir(mode=0o700)
    with closing(sqlite3.connect(home / "bus.db")) as file:
        file.executescript(FORMAT_1 + f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;")
    with Running(home) as running, running.join("old", "bob") as bob:
        assert bob.receive("bob")["payload"] == "words"
        listed = bob.ask("session.list", "bob")["payload"]["sessions"]
        assert [(one["id"], one["name"], one["policy"]) for one in listed] == [("old", "kept", "open")]
    with closing(sqlite3.connect(home / "bus.db")) as migrated, closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(resources.files("redkey.bus").joinpath("schema.sql").read_text())
        assert columns(migrated) == columns(fresh)
