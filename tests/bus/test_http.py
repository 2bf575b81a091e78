"""The HTTP face: what existing clients expect, what seed 002 requires, and who may call."""

from __future__ import annotations

import http.client
import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.harness.bus_process import BusProcess
from tests.harness.served_bus import ServedBus
from tests.harness.weave import Refused

Reply = tuple[int, Any]


class Caller:
    """A caller with the token."""

    def __init__(self, bus: BusProcess | ServedBus) -> None:
        self._address, self._token = urlsplit(bus.url).netloc, bus.token

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        connection = http.client.HTTPConnection(self._address, timeout=30)
        try:
            sent = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
            sent |= {name.replace("_", "-"): value for name, value in headers.items()}
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, f"/api{path}", data, {name: value for name, value in sent.items() if value})
            reply = connection.getresponse()
            text = reply.read()
            return reply.status, json.loads(text) if text else None
        finally:
            connection.close()

    def events(self, path: str, count: int, **headers: str) -> list[tuple[str, dict[str, Any]]]:
        """The first events of a stream, with their ids."""
        connection = http.client.HTTPConnection(self._address, timeout=30)
        try:
            sent = {"Authorization": f"Bearer {self._token}"}
            sent |= {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET", f"/api{path}", headers=sent)
            reply = connection.getresponse()
            assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
            found: list[tuple[str, dict[str, Any]]] = []
            key = ""
            while len(found) < count:
                data = reply.readline()
                assert data, f"the stream ended after {len(found)} events"
                line = data.decode().rstrip("\n")
                if line.startswith("id: "):
                    key = line.removeprefix("id: ")
                elif line.startswith("data: "):
                    found.append((key, json.loads(line.removeprefix("data: "))))
            return found
        finally:
            connection.close()


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BusProcess]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rkbus") as folder, BusProcess(Path(folder) / "weave") as found:
        yield found


@pytest.fixture(scope="module")
def ask(bus: BusProcess) -> Caller:
    return Caller(bus)


@pytest.fixture
def session(ask: Caller) -> str:
    status, found = ask("POST", "/sessions", {"name": "talk"})
    assert status == 201
    return str(found["id"])


def test_sessions_have_the_fields_of_the_seed(ask: Caller, session: str) -> None:
    status, found = ask("GET", f"/sessions/{session}")
    assert status == 200
    assert found.keys() == {"id", "name", "status", "policy", "created_at", "updated_at"}
    assert (found["name"], found["status"], found["policy"]) == ("talk", "open", "open")
    status, listed = ask("GET", "/sessions")
    assert found in listed
    assert [one["id"] for one in listed] == sorted(one["id"] for one in listed)
    assert ask("POST", f"/sessions/{session}/close")[1]["status"] == "closed"
    assert ask("POST", f"/sessions/{session}/close")[0] == 200
    assert ask("GET", f"/sessions/{session}")[1]["status"] == "closed"


def test_a_session_of_an_id_is_made_once(ask: Caller) -> None:
    assert ask("POST", "/sessions", {"id": "mine", "name": "x"})[0] == 201
    status, again = ask("POST", "/sessions", {"id": "mine"})
    assert (status, again["name"]) == (200, "x")
    assert ask("POST", "/sessions", {"id": " "})[:1] == (400,)
    assert ask("POST", "/sessions", {"id": " "})[1]["error"] == "id must be non-empty"
    assert ask("POST", "/sessions", {"id": "../up"})[1]["code"] == "session_id_invalid"


def test_agents_come_change_move_and_go(ask: Caller, session: str) -> None:
    agents = f"/sessions/{session}/agents"
    status, ann = ask("POST", agents, {"id": "ann", "name": " Ann ", "lead": True})
    assert (status, ann) == (201, {"id": "ann", "name": "Ann", "lead": True, "status": None, "online": False})
    assert ask("POST", agents, {"id": "ann"})[0] == 200
    status, other = ask("POST", agents, {})
    assert status == 201
    assert ask("POST", f"{agents}/order", {"agent_ids": [other["id"], "ann"]})[1][0]["id"] == other["id"]
    status, refused = ask("POST", f"{agents}/order", {"agent_ids": ["ann"]})
    assert (status, refused["error"]) == (400, "agent_ids must include each existing agent once")
    status, changed = ask("PATCH", f"{agents}/ann", {"status": "thinking", "lead": False})
    assert (status, changed["status"], changed["lead"], changed["name"]) == (200, "thinking", False, "Ann")
    assert ask("DELETE", f"{agents}/{other['id']}") == (204, None)
    assert ask("DELETE", f"{agents}/{other['id']}")[1]["code"] == "agent_not_found"
    assert [one["id"] for one in ask("GET", agents)[1]] == ["ann"]
    assert ask("POST", agents, {"id": ""})[1]["error"] == "id must be non-empty"
    assert ask("PATCH", f"{agents}/ann", {"name": "  "})[1]["code"] == "name_blank"


def test_a_rename_by_http_is_heard_on_the_socket(bus: BusProcess, ask: Caller, session: str) -> None:
    with bus.join(session, "ann") as ann:
        assert ask("PATCH", f"/sessions/{session}/agents/ann", {"name": "Annie"})[0] == 200
        assert ann.take("agent.updated")["payload"]["name"] == "Annie"
        assert ann.ask("agent.list", "ann", session=session)["payload"]["agents"][0]["name"] == "Annie"


def test_a_message_by_http_arrives_on_the_socket_and_is_confirmed(bus: BusProcess, ask: Caller, session: str) -> None:
    with bus.join(session, "bob") as bob:
        status, sent = ask(
            "POST",
            f"/sessions/{session}/messages",
            {"text": "hi", "agent_ids": ["bob", "nobody"]},
            Prefer="return=representation",
        )
        assert status == 202
        got = bob.receive("bob")
        assert (got["src"], got["payload"]["text"]) == ("user", "hi")
        (message,) = sent
        assert message["id"] == got["id"]
        assert {
            "id", "session_id", "src", "dst", "kind", "text", "conversation_id", "conversation_owner",
            "parent_message_id", "created_at", "reply_to",
        } <= message.keys()  # fmt: skip
        assert (message["kind"], message["dst"], message["conversation_owner"]) == ("user", "bob", "user")
        assert ask("GET", f"/sessions/{session}/messages/{got['id']}")[1] == {
            **message,
            "ack": got["ack"],
            "deliveries": [{"agent_id": "bob", "state": "acknowledged"}],
        }


def test_a_message_to_nobody_is_refused_as_older_clients_know_it(ask: Caller, session: str) -> None:
    messages = f"/sessions/{session}/messages"
    assert ask("POST", messages, {"text": "hi"})[1]["error"] == "missing text or agent_ids"
    assert ask("POST", messages, {"agent_ids": ["a"]})[1]["error"] == "missing text or agent_ids"
    assert ask("POST", messages, {"text": "hi", "agent_ids": ["a"]})[1]["error"] == "agent_ids not found"
    assert ask("POST", "/sessions/none/messages", {"text": "hi", "agent_ids": ["a"]})[0] == 404


def test_an_agent_may_live_by_http_alone(ask: Caller, session: str) -> None:
    base = f"/sessions/{session}"
    for key in ("ann", "bob"):
        ask("POST", f"{base}/agents", {"id": key})
    assert ask("POST", f"{base}/messages", {"text": "one", "agent_ids": ["bob"], "src": "ann"})[0] == 202
    assert ask("POST", f"{base}/messages", {"text": "two", "agent_ids": ["bob"], "src": "ann"})[0] == 202
    waiting = ask("GET", f"{base}/agents/bob/messages")[1]
    assert [(one["src"], one["text"]) for one in waiting] == [("ann", "one"), ("ann", "two")]
    path = f"{base}/messages/{waiting[0]['id']}/ack"
    assert ask("POST", path, {"agent_id": "bob"}) == (204, None)
    assert ask("POST", path, {"agent_id": "bob"}) == (204, None)
    assert [one["text"] for one in ask("GET", f"{base}/agents/bob/messages")[1]] == ["two"]
    assert ask("POST", f"{base}/messages/none/ack", {"agent_id": "bob"})[1]["code"] == "message_not_found"


def test_nobody_speaks_by_http_for_an_agent_on_the_socket(bus: BusProcess, ask: Caller, session: str) -> None:
    ask("POST", f"/sessions/{session}/agents", {"id": "bob"})
    with bus.join(session, "ann"):
        body = {"text": "as ann", "agent_ids": ["bob"], "src": "ann"}
        status, refused = ask("POST", f"/sessions/{session}/messages", body)
        assert (status, refused["code"]) == (409, "agent_taken")


def test_an_agent_removed_by_http_can_send_no_more(bus: BusProcess, ask: Caller, session: str) -> None:
    with bus.join(session, "ann") as ann, bus.join(session, "bob"):
        assert ask("DELETE", f"/sessions/{session}/agents/ann")[0] == 204
        assert ann.take("agent.deleted")["payload"]["id"] == "ann"
        with pytest.raises(Refused, match="src_not_bound"):
            ann.ask("message.send", "ann", session=session, dst="bob", payload="x")


def test_events_are_a_list_and_a_stream_that_resumes(ask: Caller, session: str) -> None:
    base = f"/sessions/{session}"
    for key in ("ann", "bob"):
        ask("POST", f"{base}/agents", {"id": key})
    ask("POST", f"{base}/messages", {"text": "hi", "agent_ids": ["bob"], "src": "ann"})
    listed = ask("GET", f"{base}/events")[1]
    assert [one["type"] for one in listed] == ["session.created", "agent.created", "agent.created", "message.send"]
    assert all(one["type"] == one["event_type"] for one in listed)
    assert listed[-1].keys() == {"id", "session_id", "agent_id", "type", "event_type", "created_at", "payload"}
    assert (listed[-1]["id"], listed[-1]["agent_id"]) == ("record-4", "bob")
    assert [one["id"] for one in ask("GET", f"{base}/events?limit=2")[1]] == ["record-3", "record-4"]
    assert [one["id"] for one in ask("GET", f"{base}/events?after=1&limit=2")[1]] == ["record-2", "record-3"]
    streamed = ask.events(f"{base}/events/stream", 4)
    assert [event for _, event in streamed] == listed
    assert ask.events(f"{base}/events/stream", 2, Last_Event_ID=streamed[1][0]) == streamed[2:]
    assert ask("GET", f"{base}/events/stream", Last_Event_ID="soon")[1]["code"] == "cursor_invalid"


def test_a_stream_is_live_and_ends_with_its_session(ask: Caller, session: str) -> None:
    found: list[tuple[str, dict[str, Any]]] = []
    follower = threading.Thread(target=lambda: found.extend(ask.events(f"/sessions/{session}/events/stream", 3)))
    follower.start()
    ask("POST", f"/sessions/{session}/agents", {"id": "ann"})
    ask("POST", f"/sessions/{session}/close")
    follower.join(30)
    assert [event["type"] for _, event in found] == ["session.created", "agent.created", "session.closed"]


def test_sessions_can_be_watched(ask: Caller, session: str) -> None:
    ask("POST", f"/sessions/{session}/close")  # first: each event shows its session as it is now
    (first, *_) = ask.events("/sessions/stream", 1)
    every = ask("GET", "/sessions?status=all")[1]
    count = len(every) + len([one for one in every if one["status"] == "closed"])
    seen = ask.events("/sessions/stream", count)
    assert seen[0] == first
    mine = [event for _, event in seen if event["session_id"] == session]
    assert [event["type"] for event in mine] == ["session.created", "session.closed"]
    assert mine[-1]["session"]["status"] == "closed"
    assert ask.events("/sessions/stream", count - 1, Last_Event_ID=first[0]) == seen[1:]


def test_a_request_with_an_idempotency_key_takes_effect_once(bus: BusProcess, ask: Caller, session: str) -> None:
    base = f"/sessions/{session}"
    ask("POST", f"{base}/agents", {"id": "bob"})
    made = [ask("POST", "/sessions", {"name": "once"}, Idempotency_Key="k1") for _ in range(2)]
    assert made[0] == made[1]
    body = {"text": "hi", "agent_ids": ["bob"]}
    for _ in range(3):
        assert ask("POST", f"{base}/messages", body, Idempotency_Key="k2")[0] == 202
    assert len(ask("GET", f"{base}/agents/bob/messages")[1]) == 1
    status, refused = ask("POST", f"{base}/messages", {**body, "text": "other"}, Idempotency_Key="k2")
    assert (status, refused["code"]) == (422, "idempotency_key_reused")
    agents = [ask("POST", f"{base}/agents", {"name": "x"}, Idempotency_Key="k3") for _ in range(2)]
    assert agents[0] == agents[1]
    assert ask("POST", f"{base}/agents", {}, Idempotency_Key="k" * 256)[1]["code"] == "idempotency_key_invalid"


def test_the_token_file_is_private_to_its_owner(bus: BusProcess) -> None:
    assert stat.S_IMODE((bus.home / "token").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Authorization": ""}, 401, "unauthenticated"),
        ({"Authorization": "Bearer no"}, 401, "unauthenticated"),
        ({"Host": "evil.example:80"}, 403, "host_refused"),
        ({"Origin": "https://evil.example"}, 403, "origin_refused"),
        ({"Origin": "null"}, 403, "origin_refused"),
        ({"Origin": "http://localhost:3000"}, 200, None),
        ({"Host": "localhost:1"}, 200, None),
    ],
)
def test_only_requests_of_this_machine_with_the_token_are_accepted(
    ask: Caller, headers: dict[str, str], status: int, code: str | None
) -> None:
    found, body = ask("GET", "/sessions", **headers)
    assert (found, body.get("code") if code else None) == (status, code)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/nothing", None, 404, "path_not_found"),
        ("DELETE", "/sessions", None, 405, "method_not_allowed"),
        ("POST", "/sessions", b"{no", 400, "json_syntax"),
        ("POST", "/sessions", [], 400, "body_invalid"),
        ("POST", "/sessions", {"name": 7}, 400, "body_invalid"),
        ("POST", "/sessions", b"x" * (1024 * 1024 + 1), 413, "body_too_large"),
        ("GET", "/sessions?status=odd", None, 400, "query_invalid"),
        ("GET", "/sessions/nowhere", None, 404, "session_not_found"),
        ("GET", "/sessions/nowhere/events?limit=x", None, 400, "query_invalid"),
        ("GET", "/sessions/nowhere/events?befor=1", None, 400, "query_invalid"),
    ],
)
def test_an_invalid_request_gets_an_error_code(
    ask: Caller, method: str, path: str, body: Any, status: int, code: str
) -> None:
    found, reply = ask(method, path, body)
    assert (found, reply["code"]) == (status, code)
    assert reply["error"]


def test_head_requests_for_a_stream_are_refused(ask: Caller, session: str) -> None:
    assert ask("HEAD", f"/sessions/{session}/events/stream") == (405, None)
    assert ask("HEAD", f"/sessions/{session}") == (200, None)


def test_a_form_of_a_web_page_is_refused(ask: Caller) -> None:
    status, refused = ask("POST", "/sessions", b"{}", Content_Type="text/plain")
    assert (status, refused["code"]) == (415, "media_type")


def test_a_closed_session_accepts_nothing(ask: Caller, session: str) -> None:
    ask("POST", f"/sessions/{session}/close")
    for method, path, body in (
        ("POST", "agents", {"id": "ann"}),
        ("GET", "agents", None),
        ("POST", "messages", {"text": "x", "agent_ids": ["a"]}),
    ):
        assert ask(method, f"/sessions/{session}/{path}", body)[1]["code"] == "session_closed"
