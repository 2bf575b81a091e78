"""Known ids: no message is accepted twice, whether or not its session is covered or the table is full."""

from __future__ import annotations

from pathlib import Path

import pytest

import redkey.bus.core
from redkey.bus.known_ids import KnownIds
from tests.bus.test_delivery import send
from tests.harness.running_bus import Running
from tests.harness.weave import Refused

IDS = [f"message-{number}" for number in range(1_000)]


def test_an_existing_id_is_never_called_new() -> None:
    known = KnownIds()
    known.cover(1, IDS[:500])
    for record_id in IDS[500:]:
        known.add(1, record_id)
    assert all(known.may_contain(1, record_id) for record_id in IDS)
    # One bit may be that of another id, but not often.
    assert sum(known.may_contain(1, f"new-{number}") for number in range(1_000)) < 10


def test_in_an_uncovered_session_every_id_may_exist() -> None:
    known = KnownIds()
    assert known.may_contain(2, "any")
    known.cover(2)
    assert not known.may_contain(2, "any")
    known.forget(2)
    assert known.may_contain(2, "any")


@pytest.mark.parametrize("covered", [0, 1_000_000])
def test_an_id_is_used_once_over_restarts(home: Path, monkeypatch: pytest.MonkeyPatch, covered: int) -> None:
    monkeypatch.setattr(redkey.bus.core, "_COVERED_RECORDS", covered)
    with Running(home) as running:
        session = running.session()
        with running.join(session, "ann") as ann, running.join(session, "bob"):
            send(ann, session, "bob", "first", id="m-1")
    for _ in range(2):
        with Running(home) as running, running.join(session, "ann") as ann:
            with pytest.raises(Refused, match="id_reused"):
                send(ann, session, "bob", "other", id="m-1")
            send(ann, session, "bob", "first", id="m-1")
            records = ann.ask("events.history", "ann", session=session)["payload"]["records"]
            assert [one["envelope"]["id"] for one in records].count("m-1") == 1
