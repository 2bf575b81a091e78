"""The power fails under a whole server: what it had said on its sockets by then is there when it comes back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.judge import Wrong
from tests.crash.server_power_cut import ServerExaminer
from tests.crash.server_recording import Said, ServerHistory, record_server

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
STATES, ANSWERS = (20_000, 1500) if LONG else (500, 150)
PLANTED = Path(__file__).with_name("planted_server.py")


@pytest.fixture(scope="module")
def history(strace: None) -> ServerHistory:
    return record_server(ANSWERS)


def test_what_a_server_said_is_there_after_a_power_cut(
    history: ServerHistory, scratch: Path, tell: Callable[[str], None], count: Callable[[str, int], None]
) -> None:
    said = [step for step in history.steps if isinstance(step, Said)]
    events, contents, talk = (
        frozenset[str]().union(*(getattr(one, name) for one in said)) for name in ("events", "contents", "talk")
    )
    assert len(events) >= ANSWERS
    assert len(contents) >= 6
    assert len(talk) >= 12
    states = ServerExaminer(history, scratch).examine(STATES)
    assert states >= STATES
    told = f"{len(events)} events, {len(contents)} bodies, {len(talk)} words of the bus told on sockets"
    tell(f"a whole server: {states:,} disk states of a power cut, {told}")
    count("disk states of a power cut", states)


def test_a_server_that_answers_before_its_log_is_synced_is_found(strace: None, scratch: Path) -> None:
    planted = record_server(60, [str(PLANTED)])
    with pytest.raises(Wrong, match=r"are lost|records are missing"):
        ServerExaminer(planted, scratch).examine(STATES)
