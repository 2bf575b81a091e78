"""Ids as people type and read them: the beginning is enough where it is unique, and tables show no more than that."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from redkey.cli.short_ids import shorten
from redkey.client import RedKey
from tests.cli.test_daily_commands import _call, _does
from tests.harness.server import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("short")) as running:
        yield running


def test_a_beginning_of_an_id_is_enough(server: Server) -> None:
    task = _does(server, "task", "create", "--title", "alone").strip()
    rest = task.removeprefix("task_")
    for given in (task, task[:-3], rest[:20], rest[:20].lower()):
        assert re.search(rf"task +{task}", _does(server, "task", "show", given)), given
    assert f"{task} is cancelled" in _does(server, "task", "cancel", rest[:20])


def test_claims_messages_and_logs_are_named_by_a_beginning(server: Server, tmp_path: Path) -> None:
    _does(server, "agent", "register", "cleo")
    task = _does(server, "task", "create", "--title", "held", "--queue", "held").strip()
    claim = _does(server, "claim", "take", task, "--agent", "cleo", "-q").strip()
    assert f"{task} started" in _does(server, "claim", "start", claim.removeprefix("clm_")[:16])
    message = json.loads(_does(server, "inbox", "send", "--to", "cleo", "--subject", "Hi", "--json"))["messageId"]
    assert f"{message} is read" in _does(server, "inbox", "read", message[:-2])
    _does(server, "claim", "complete", claim[:-4])
    end = tmp_path / "logs" / task / "1-aaaaaaaa" / "end.json"
    end.parent.mkdir(parents=True)
    end.write_text(
        json.dumps({"task_id": task, "agent": "cleo", "attempt": 1, "claim_id": claim, "event": "failed"})[:-1]
        + ', "reason": "It rained", "at": "2026-01-01T00:00:00Z"}'
    )
    assert "It rained" in _does(server, "task", "logs", task[5:15], "--work", str(tmp_path))


def test_events_are_named_by_a_beginning(server: Server, tmp_path: Path) -> None:
    _does(server, "task", "create", "--title", "recorded")
    # Of the block of records that is not indexed yet, and of the index: 300 later records complete the block.
    event = _does(server, "events", "tail", "--type", "task.created", "-n", "1", "-q").strip()
    for _ in range(2):
        for given in (event, event[:-2], event[4:20], event[4:20].lower()):
            assert re.search(rf"event +{event}", _does(server, "events", "show", given)), given
        receipt = tmp_path / "receipt.json"
        _does(server, "receipt", "get", event[4:20], "--out", str(receipt))
        assert event in receipt.read_text()
        with RedKey(server.url, server.key) as rk:
            rk.tasks.create_many("default", [{"title": f"later {n}"} for n in range(300)])
    for given in (event[:-2], event[4:20].lower()):
        exported = _does(server, "receipt", "export", str(server.data), given, "--url", server.url)
        assert event in exported
    several = _call(server, "events", "show", _does(server, "events", "tail", "-n", "1", "-q")[:12])
    assert several.exit_code == 2
    assert "is the beginning of several ids: evt_" in several.output
    several = _call(server, "receipt", "export", str(server.data), "evt_0")
    assert several.exit_code == 2
    assert "is the beginning of several ids: evt_" in several.output
    short = _call(server, "events", "show", "evt_0")
    assert short.exit_code == 1
    assert "has eight characters or more" in short.output


def test_a_beginning_of_several_ids_names_them_and_does_nothing(server: Server) -> None:
    made = [_does(server, "task", "create", "--title", title).strip() for title in "xy"]
    result = _call(server, "task", "cancel", "task_0")
    assert result.exit_code == 2
    assert "is the beginning of several ids: " in result.output
    assert all(_does(server, "task", "show", one).count("available") for one in made)


def test_what_is_no_beginning_is_not_found(server: Server) -> None:
    result = _call(server, "task", "show", "task_ZZZZ")
    assert result.exit_code == 1
    assert "[task_not_found]" in result.output


def test_agents_are_named_by_slug_or_the_beginning_of_their_id(server: Server) -> None:
    agent = _does(server, "agent", "register", "ada").split()[0]
    assert "ada" in _does(server, "agent", "show", agent[:20])


def test_tables_cut_ids_to_what_tells_them_apart() -> None:
    first, second = "task_01ABCDEFGHJKMNPQRSTVWXYZ01", "task_01ABCDEFGHJKMNPQRSTVWXYZ02"
    apart = "task_02ABCDEFGHJKMNPQRSTVWXYZ02"
    assert shorten([(first, "a"), (apart, "task_b")]) == [["01ABCDEF", "a"], ["02ABCDEF", "task_b"]]
    assert shorten([(first, "a"), (second, "b")]) == [[first[5:], "a"], [second[5:], "b"]]
    assert shorten([(first, "a"), (first, "b")]) == [["01ABCDEF", "a"], ["01ABCDEF", "b"]]
    assert shorten([]) == []
