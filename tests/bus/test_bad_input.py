"""Bad input and bad callers: each gets an error with a code or a closed connection, and the bus keeps running."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from redkey.bus.limits import BusLimits
from redkey.errors import CannotListen, ConfigRefused
from tests.harness.running_bus import Running
from tests.harness.weave import Link, Refused


def said(link: Link, data: bytes) -> dict[str, Any]:
    """Send bytes, and return the reply of the bus."""
    link.raw(data)
    found = link.line()
    assert found["status"] == "error"
    error: dict[str, Any] = found["error"]
    return error


def still_answers(running: Running) -> None:
    with running.link() as link:
        link.ask("session.list", "codex-cli")


GOOD = {"v": 0, "type": "session.list", "id": "1", "ts": "2026-01-01T00:00:00Z", "src": "codex-cli"}


def line(**changes: Any) -> bytes:
    return json.dumps({**GOOD, **changes}).encode() + b"\n"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{not json\n", "json_syntax"),
        (b"\xff\xfe{}\n", "json_utf8"),
        (b'"text"\n', "envelope_invalid"),
        (b"[" * 100_000 + b"\n", "json_too_deep"),
        (b'{"v":0,"v":0}\n', "json_duplicate_key"),
        (b'{"v":NaN}\n', "json_number"),
        (b'{"v":0,"id":"\\ud800"}\n', "json_surrogate"),
        (b"{}\n", "envelope_invalid"),
        (line(v="0"), "envelope_invalid"),
        (line(type=7), "envelope_invalid"),
        (line(id=""), "envelope_invalid"),
        (line(id="x" * 1000), "envelope_invalid"),
        (line(v=2), "unsupported_version"),
        (line(v=-1), "unsupported_version"),
        (line(type="agent.hello"), "unknown_command"),
        (line(type="agent.list"), "session_missing"),
        (line(type="agent.list", session="nowhere"), "session_not_found"),
        (line(type="agent.list", session="../../etc"), "session_not_found"),
        (line(type="session.create", payload=[]), "payload_invalid"),
        (line(type="session.create", payload={"name": 7}), "name_invalid"),
        (line(type="session.create", payload={"name": "a\u001b[2J"}), "name_invalid"),
    ],
)
def test_an_invalid_line_is_refused_and_the_next_is_read(running: Running, data: bytes, code: str) -> None:
    with running.link() as link:
        assert said(link, data)["code"] == code
        assert link.ask("session.list", "codex-cli")["status"] == "ok"


def test_a_refusal_names_the_request_if_its_id_can_be_read(running: Running) -> None:
    with running.link() as link:
        link.raw(line(v=2, id="my-request"))
        assert link.line()["corr"] == "my-request"


def test_an_endless_line_is_cut_before_it_fills_the_memory(running: Running) -> None:
    with running.link() as link:
        chunk = b"x" * 65536
        sent = 0
        try:
            while sent < 100 * 1024 * 1024:
                link.raw(chunk)
                sent += len(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert sent < 8 * 1024 * 1024
    still_answers(running)


def test_a_connection_with_half_a_line_is_closed_after_a_time(home: Path) -> None:
    with Running(home, BusLimits(line_seconds=0.2)) as running, running.link() as link:
        assert said(link, b'{"v":0,')["code"] == "line_too_slow"
        with pytest.raises(EOFError):
            link.line()
        still_answers(running)


def test_an_idle_connection_without_an_agent_is_closed(home: Path) -> None:
    with Running(home, BusLimits(line_seconds=0.1, idle_seconds=0.2)) as running, running.link() as link:
        assert link.line()["error"]["code"] == "idle"
        with pytest.raises(EOFError):
            link.line()


def test_an_idle_connection_of_an_agent_stays_open(home: Path) -> None:
    # Long enough for those who connect on a busy machine to say who they are.
    with Running(home, BusLimits(line_seconds=0.1, idle_seconds=3.0)) as running:
        session = running.session()
        with running.join(session, "ann") as ann:
            with running.link() as idle:
                assert idle.line()["error"]["code"] == "idle"
            assert ann.ask("agent.list", "ann", session=session)["status"] == "ok"


def test_connections_beyond_the_limit_get_an_error(home: Path) -> None:
    with Running(home, BusLimits(connections=2)) as running:
        with running.link() as one, running.link() as two, running.link() as three:
            one.ask("session.list", "codex-cli")
            two.ask("session.list", "codex-cli")
            assert three.line()["error"]["code"] == "too_many_connections"
        with running.link() as again:
            assert again.ask("session.list", "codex-cli")["status"] == "ok"


def test_a_thousand_connections_open_and_close(running: Running) -> None:
    for _ in range(1000):
        with running.link() as link:
            link.raw(b"{")
    still_answers(running)


@pytest.fixture
def session(running: Running) -> str:
    return running.session()


def test_an_agent_can_only_act_as_itself(running: Running, session: str) -> None:
    with running.join(session, "ann") as ann, running.join(session, "bob") as bob:
        for kind, payload in (
            ("agent.add", {"id": "bob"}),
            ("agent.update", {"id": "bob", "name": "Mine"}),
            ("agent.remove", {"id": "bob"}),
        ):
            with pytest.raises(Refused, match="id_mismatch"):
                ann.ask(kind, "ann", session=session, payload=payload)
        for kind, payload in (
            ("agent.update", {"id": "bob", "name": "Mine"}),
            ("agent.remove", {"id": "bob"}),
            ("message.send", {"text": "as bob"}),
            ("message.ack", {"acked": "x"}),
        ):
            with pytest.raises(Refused, match="src_not_bound"):
                ann.ask(kind, "bob", session=session, dst="ann", payload=payload)
        assert bob.ask("agent.list", "bob", session=session)["status"] == "ok"


def test_an_agent_id_is_taken_while_its_connection_lives(running: Running, session: str) -> None:
    with running.join(session, "ann"), running.link() as other, pytest.raises(Refused, match="agent_taken"):
        other.ask("agent.add", "ann", session=session, payload={"id": "ann"})
    with running.join(session, "ann") as back:
        assert back.ask("agent.list", "ann", session=session)["payload"]["agents"][0]["online"] is True


@pytest.mark.parametrize("key", ["", " ", "a b", "a/b", "#a", "x" * 129, "a\n", "bus", "user", "redkey", None, 7])
def test_an_agent_id_that_cannot_be_used_is_refused(running: Running, session: str, key: Any) -> None:
    with running.link() as link:
        src = key if isinstance(key, str) and 0 < len(key) <= 128 else "someone"
        with pytest.raises(Refused, match=r"(agent_id|envelope)_(invalid|reserved)"):
            link.ask("agent.add", src, session=session, payload={"id": key})


@pytest.mark.parametrize("name", ["", "   ", None])
def test_a_blank_name_is_refused(running: Running, session: str, name: Any) -> None:
    with running.join(session, "ann") as ann, pytest.raises(Refused, match="name_blank"):
        ann.ask("agent.update", "ann", session=session, payload={"id": "ann", "name": name})


def test_commands_in_a_closed_session_are_refused(running: Running, session: str) -> None:
    with running.link() as link:
        link.ask("session.close", "codex-cli", session=session)
        # Closing it again is fine, as by HTTP.
        assert link.ask("session.close", "x", session=session)["payload"]["session"]["status"] == "closed"
        for kind, payload in (
            ("agent.list", None),
            ("agent.add", {"id": "ann"}),
            ("message.send", {"text": "x"}),
        ):
            with pytest.raises(Refused, match="session_closed"):
                link.ask(kind, "ann", session=session, payload=payload)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"dst": "nobody", "payload": "x"}, "agent_not_found"),
        ({"dst": "ann", "payload": "x"}, "self_addressed"),
        ({"dst": "bob"}, "payload_invalid"),
        ({"topic": "weather", "payload": "x"}, "topic_invalid"),
        ({"topic": "agent.bob.inbox", "dst": "ann", "payload": "x"}, "topic_invalid"),
        ({"topic": "agents", "dst": "bob", "payload": "x"}, "topic_invalid"),
        ({"dst": "bob", "payload": "x", "ack": {"mode": "maybe"}}, "ack_invalid"),
        ({"dst": "bob", "payload": "x", "ack": {"timeout_ms": 1}}, "ack_invalid"),
        ({"dst": "bob", "payload": "x", "ack": {"timeout_ms": 10**9}}, "ack_invalid"),
        ({"payload": "x"}, "no_destination"),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused(
    running: Running, session: str, fields: dict[str, Any], code: str
) -> None:
    with running.join(session, "ann") as ann, running.join(session, "bob"):
        with pytest.raises(Refused, match=code):
            ann.ask("message.send", "ann", session=session, **fields)
        records = ann.ask("events.history", "ann", session=session)["payload"]["records"]
        assert [one for one in records if one["envelope"]["type"] == "message.send"] == []


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("events.history", {"limit": -1}),
        ("events.history", {"limit": "many"}),
        ("events.stream", {"follow": "yes"}),
        ("events.stream", {"after": True}),
    ],
)
def test_an_invalid_query_is_refused(running: Running, session: str, kind: str, payload: dict[str, Any]) -> None:
    with running.link() as link, pytest.raises(Refused, match="payload_invalid"):
        link.ask(kind, "codex-cli", session=session, payload=payload)


def test_requests_beyond_a_limit_get_an_error(home: Path) -> None:
    with Running(home, BusLimits(sessions=1, agents=2, mailbox=3)) as running:
        session = running.session()
        with running.link() as link, pytest.raises(Refused, match="too_many_sessions"):
            link.ask("session.create", "codex-cli")
        running.join(session, "bob").close()
        with running.join(session, "ann") as ann:
            with pytest.raises(Refused, match="too_many_agents"):
                ann.ask("agent.add", "cid", session=session, payload={"id": "cid"})
            for _ in range(3):
                ann.ask("message.send", "ann", session=session, dst="bob", payload="x")
            with pytest.raises(Refused, match="mailbox_full"):
                ann.ask("message.send", "ann", session=session, dst="bob", payload="x")


# The home and its sockets.


def test_a_symlink_or_file_at_the_path_of_the_socket_is_not_touched(home: Path, tmp_path: Path) -> None:
    home.mkdir(mode=0o700)
    target = tmp_path / "precious"
    target.write_text("mine")
    (home / "coord.sock").symlink_to(target)
    with pytest.raises(CannotListen, match="not a socket"):
        Running(home).start_and_clean()
    assert target.read_text() == "mine"
    (home / "coord.sock").unlink()
    (home / "coord.sock").write_text("also mine")
    with pytest.raises(CannotListen, match="not a socket"):
        Running(home).start_and_clean()
    assert (home / "coord.sock").read_text() == "also mine"


def test_a_symlink_in_place_of_a_session_socket_disables_that_socket_only(home: Path, tmp_path: Path) -> None:
    with Running(home) as running:
        session = running.session()
    (home / "sessions" / session).mkdir(mode=0o700, exist_ok=True)
    (home / "sessions" / session / "coord.sock").symlink_to(tmp_path / "elsewhere")
    with Running(home) as running:
        assert not (tmp_path / "elsewhere").exists()
        with running.join(session, "ann") as ann:
            assert ann.ask("agent.list", "ann", session=session)["status"] == "ok"


def test_a_dead_socket_is_replaced_and_a_live_one_is_not(home: Path) -> None:
    home.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(home / "coord.sock"))
    with Running(home) as running:
        still_answers(running)
    with socket.socket(socket.AF_UNIX) as live:
        live.bind(str(home / "coord.sock"))
        live.listen()
        with pytest.raises(CannotListen, match="already listens") as refused:
            Running(home).start_and_clean()
        assert refused.value.code == "bus_running"


def test_a_home_has_one_bus(running: Running) -> None:
    with pytest.raises(CannotListen, match="a bus is already running") as refused:
        Running(running.home).start_and_clean()
    assert refused.value.code == "bus_running"
    still_answers(running)


def test_a_home_that_other_users_may_write_to_is_refused(home: Path) -> None:
    home.mkdir(mode=0o700)
    home.chmod(0o777)
    with pytest.raises(CannotListen, match="other users may write"):
        Running(home).start_and_clean()


def test_a_home_with_too_long_a_path_is_refused(home: Path) -> None:
    with pytest.raises(CannotListen, match="too long"):
        Running(home / ("d" * 100)).start_and_clean()


def test_a_blank_weave_home_is_refused() -> None:
    from redkey.bus.home import home_of

    with pytest.raises(ConfigRefused, match="blank"):
        home_of({"WEAVE_HOME": "  "})
    assert home_of({"WEAVE_HOME": "~/talk"}) == Path("~/talk").expanduser()
    assert home_of({}) == Path("~/.weave").expanduser()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user to be refused")
def test_another_user_is_refused(running: Running) -> None:
    running.home.parent.chmod(0o755)
    running.home.chmod(0o711)
    (running.home / "coord.sock").chmod(0o666)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(12345)
            with Link(running.home / "coord.sock") as link:
                code = 0 if link.line()["error"]["code"] == "peer_refused" else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_session_sockets_do_not_use_all_open_files(running: Running) -> None:
    made = [running.session() for _ in range(300)]
    assert len(list((running.home / "sessions").iterdir())) == 256
    with running.join(made[-1], "ann") as ann:
        assert ann.ask("agent.list", "ann", session=made[-1])["status"] == "ok"
