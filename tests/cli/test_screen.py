"""Tables, facts and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from redkey.cli import main
from redkey.cli.screen import ago, print_facts, print_list, print_table, rich_table

PLAN = Path(__file__).resolve().parents[2] / "examples" / "podcast" / "plan.json"


def test_in_a_pipe_columns_are_aligned_and_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("ID", "TITLE"), [("a", "x" * 300), ("long-id", "short")])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["ID       TITLE", "a        " + "x" * 300, "long-id  short"]


def test_on_a_narrow_terminal_ids_are_short_and_the_last_column_gives_way() -> None:
    console = Console(width=50, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(rich_table(("ID", "TITLE"), [("task_01M7GRMQF0CPSMCDS1C09R2W06", "A long title " * 10)], 50))
    _, row = capture.get().splitlines()
    assert row.startswith("01M7GRMQ  A long")
    assert row.rstrip().endswith("…")


def test_a_narrow_window_leaves_out_blank_columns_first_and_then_those_in_the_middle() -> None:
    titles = ("ID", "STATE", "TRY", "AGENT", "TITLE")
    rows = [("1", "open", "1", "", "Write the intro of the show with Piers")]

    def shown(width: int) -> list[str]:
        console = Console(width=width, force_terminal=True, color_system=None)
        with console.capture() as capture:
            console.print(rich_table(titles, rows, width))
        return [line.rstrip() for line in capture.get().splitlines()]

    assert shown(80)[0].split() == [*titles]
    assert shown(56) == ["ID  STATE  TRY  TITLE", "1   open   1    Write the intro of the show with Piers"]
    assert shown(28) == ["ID  STATE  TITLE", "1   open   Write the intro…"]


def test_brackets_and_control_characters_of_strangers_are_text() -> None:
    console = Console(width=80, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(rich_table(("TITLE",), [("[red]not markup[/red] \x1b[2J",)]))
    assert "[red]not markup[/red] \\x1b[2J" in capture.get()


def test_an_empty_list_is_one_sentence_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    print_list([], ("ID",), lambda one: (one,), as_json=False, empty="nothing yet")
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "nothing yet\n")
    print_list([], ("ID",), lambda one: (one,), as_json=True, empty="nothing yet")
    assert capsys.readouterr() == ("", "")


def test_facts_that_are_not_known_are_left_out_and_zero_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts([("a", None), ("b", ""), ("c", 0), ("d", ("x", "y")), ("e", {"k": 1}), ("f", False), ("g", True)])
    assert capsys.readouterr().out == 'c  0\nd  x, y\ne  {"k":1}\ng  yes\n'


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(4, "4s ago"), (90, "1m ago"), (3 * 3600 + 5, "3h ago"), (50 * 3600, "2d ago"), (-61, "in 1m")],
)
def test_times_are_told_roughly(seconds: int, told: str) -> None:
    now = datetime.now(UTC)
    assert ago((now - timedelta(seconds=seconds)).isoformat(), now) == told


def test_a_moment_with_nanoseconds_is_read_and_none_is_nothing() -> None:
    assert ago("2020-01-01T00:00:00.000000001Z").endswith("d ago")
    assert ago(None) == ""


def test_who_wants_no_colours_gets_none() -> None:
    coloured = CliRunner().invoke(main, ["plan", "show", str(PLAN)], color=True, env={"NO_COLOR": None})
    assert "\x1b[" in coloured.stdout
    plain = CliRunner().invoke(main, ["plan", "show", str(PLAN)], color=True, env={"NO_COLOR": "1"})
    assert "\x1b[" not in plain.stdout
