"""Ids as people type and read them: the beginning is enough where it is unique, and tables show no more than that."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from redkey.cli.short_ids import shorten
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
    _does(server, "agent", "register", "ada")
    agent = _does(server, "agent", "list", "-q").split()[0]
    assert "ada" in _does(server, "agent", "show", agent[:20])


def test_tables_cut_ids_to_what_tells_them_apart() -> None:
    first, second = "task_01ABCDEFGHJKMNPQRSTVWXYZ01", "task_01ABCDEFGHJKMNPQRSTVWXYZ02"
    apart = "task_02ABCDEFGHJKMNPQRSTVWXYZ02"
    assert shorten([(first, "a"), (apart, "task_b")]) == [["01ABCDEF", "a"], ["02ABCDEF", "task_b"]]
    assert shorten([(first, "a"), (second, "b")]) == [[first[5:], "a"], [second[5:], "b"]]
    assert shorten([(first, "a"), (first, "b")]) == [["01ABCDEF", "a"], ["01ABCDEF", "b"]]
    assert shorten([]) == []
