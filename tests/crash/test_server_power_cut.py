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
STATES, ANSWERS = (20_000, 1500) if LONG else (600, 150)
PLANTED = Path(__file__).with_name("planted_server.py")


@pytest.fixture(scope="module")
def history(strace: None) -> ServerHistory:
    return record_server(ANSWERS)


def test_what_a_server_said_is_there_after_a_power_cut(
    history: ServerHistory, scratch: Path, tell: Callable[[str], None], count: Callable[[str, int], None]
) -> None:
    said = [step for step in history.steps if isinstance(step, Said)]
    events, contents = (set().union(*parts) for parts in ([s.events for s in said], [s.contents for s in said]))
    assert len(events) >= ANSWERS
    assert len(contents) >= 6
    states = ServerExaminer(history, scratch).examine(STATES)
    assert states >= STATES
    tell(f"a whole server: {states:,} disk states of a power cut, {len(events)} events and {len(contents)} bodies told")
    count("disk states of a power cut", states)


def test_a_server_that_answers_before_its_log_is_synced_is_found(strace: None, scratch: Path) -> None:
    planted = record_server(60, [str(PLANTED)])
    with pytest.raises(Wrong, match=r"are lost|records are missing"):
        ServerExaminer(planted, scratch).examine(STATES)
