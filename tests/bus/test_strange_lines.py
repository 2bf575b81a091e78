"""Any line gets a reply or an error with a code, and the connection stays open."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redkey.bus.commands import COMMANDS
from tests.harness.running_bus import Running


@pytest.fixture(scope="module")
def bus() -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="rkbus") as folder, Running(Path(folder) / "weave") as found:
        yield found


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20))
values = st.recursive(
    scalars,
    lambda part: st.one_of(st.lists(part, max_size=3), st.dictionaries(st.text(max_size=8), part, max_size=3)),
)
names = ("v", "type", "id", "ts", "src", "dst", "topic", "session", "corr", "payload", "ack", "status", "error")
inside = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("id", "name", "acked", "limit", "before", "after", "follow", "text", "codex"), values),
)


@st.composite
def lines(draw: Any) -> tuple[str, bytes]:
    envelope: dict[str, Any] = {"v": 0, "id": "request", "ts": "now", "src": "ann", "session": "SESSION"}
    envelope["type"] = draw(st.sampled_from(sorted(COMMANDS)))
    envelope["payload"] = draw(st.one_of(inside, values))
    for name in draw(st.lists(st.sampled_from(names), max_size=3)):
        envelope[name] = draw(values)
    return envelope["type"], json.dumps(envelope).encode() + b"\n"


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(lines(), min_size=1, max_size=5))
def test_the_connection_survives_strange_lines(bus: Running, sent: list[tuple[str, bytes]]) -> None:
    session = bus.session()
    with bus.link() as link:
        # Closing the session would end the connection, as it should.
        lines = [line.replace(b"SESSION", session.encode()) for kind, line in sent if kind != "session.close"]
        # In one piece: after a stream that has ended, a connection that says nothing more is closed soon.
        last = {"v": 0, "type": "session.list", "id": "the last one", "ts": "now", "src": "codex-cli"}
        link.raw(b"".join(lines) + json.dumps(last).encode() + b"\n")
        answer = link.answer("the last one")
        assert answer["status"] == "ok"
        for heard in link.heard:
            if heard.get("status") == "error":
                assert heard["error"]["code"]
                assert heard["error"]["message"]
    with bus.link() as other:
        other.ask("session.close", "codex-cli", session=session)


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_do_no_harm(bus: Running, data: bytes) -> None:
    with bus.link() as link:
        link.raw(data + b"\n")
        assert link.ask("session.list", "codex-cli")["status"] == "ok"
