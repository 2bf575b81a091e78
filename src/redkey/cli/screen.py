"""How daily commands show things: tables, facts and times for people, JSON for machines.

On a terminal there are colours, and columns in the middle give way when the window is narrow. Anywhere else all
columns are plain text, whole, so that they can be cut and searched. What strangers wrote is escaped in both.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.next_step import Step, print_step
from redkey.cli.report import print_json, shown
from redkey.cli.short_ids import shorten

if TYPE_CHECKING:
    from rich.table import Table

_STATES_BY_COLOUR = {
    "bright_black": "created waiting missed cancelled inactive revoked",
    "cyan": "available",
    "yellow": "open claimed working running",
    "magenta": "blocked stuck paused lost",
    "blue": "awaiting_approval",
    "green": "completed approved active verified",
    "red": "failed rejected",
}
# The colour of a state, in whatever cell it appears.
COLOURS: Mapping[str, str] = {state: colour for colour, states in _STATES_BY_COLOUR.items() for state in states.split()}
_GAP = "  "
# Columns that are shown in every window, and what the last column gets at least.
_KEPT = ("STATE",)
_TITLE = 16


def on_terminal() -> bool:
    """Whether a person sees the output as it comes."""
    return sys.stdout.isatty()


@contextmanager
def until_reader_leaves() -> Iterator[None]:
    """For lists and live views: a reader that has seen enough, as `| head -n 1` has, is no failure of the command.

    Never around a verdict: there the exit code is the answer, and nobody has heard it yet.
    """
    try:
        yield
    except BrokenPipeError:
        watch = select.poll()
        watch.register(sys.stdout, 0)
        if not watch.poll(0):
            # It was another pipe that broke, perhaps the one to the server.
            raise
        # The interpreter flushes once more at its end, and would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@until_reader_leaves()
def print_list(
    items: Iterable[Any], titles: Sequence[str], row: Any, *, as_json: bool, empty: str, ids_only: bool = False
) -> None:
    """A list: a table for people, with one sentence in place of an empty one; a JSON object a line for machines; for
    scripts the ids alone, which are the first column."""
    if as_json:
        for item in items:
            print_item(item)
        return
    if ids_only:
        for item in items:
            click.echo(row(item)[0])
        return
    rows = [row(item) for item in items]
    if not rows:
        click.echo(empty, err=True)
        return
    print_table(titles, rows)


def print_item(item: Any) -> None:
    """One thing as one line of JSON, under the names that the API uses."""
    import msgspec

    print_json(msgspec.to_builtins(item))


def print_done(item: Any, sentence: str, *, as_json: bool, next_step: str | Step = "") -> None:
    """What a command did: the server's answer as JSON, or a sentence and the next step."""
    if as_json:
        print_item(item)
    else:
        tell(sentence, next_step=next_step)


def print_details(item: Any, facts: Iterable[tuple[str, Any]], *, as_json: bool) -> None:
    """One thing in full: the server's answer as JSON, or a fact a line."""
    if as_json:
        print_item(item)
    else:
        print_facts(facts)


@until_reader_leaves()
def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on standard output."""
    if on_terminal():
        from rich.console import Console

        Console(highlight=False).print(rich_table(titles, rows))
        return
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in [titles, *cells]) for place in range(len(titles))]
    for line in [titles, *cells]:
        click.echo(_GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def rich_table(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> Table:
    """A table for a terminal: ids are cut to what tells them apart, and no cell wraps.

    Where the window is narrow, the last column keeps a part of it: columns in the middle are left out, the last first.
    """
    from rich.table import Table
    from rich.text import Text

    rows = [[shown(cell) for cell in row] for row in shorten(rows)]
    widths = [max([len(title), *(len(row[place]) for row in rows)]) for place, title in enumerate(titles)]
    blank = [place for place in range(len(titles)) if not any(row[place] for row in rows)]
    columns, room = _columns(titles, widths, blank, width or _terminal_columns())
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place in columns:
        table.add_column(titles[place], no_wrap=True)
    for row in rows:
        cells = [cut(row[place], room) if place == columns[-1] else row[place] for place in columns]
        table.add_row(*(Text(cell, COLOURS.get(cell, ""), no_wrap=True, overflow="ellipsis") for cell in cells))
    return table


def _columns(titles: Sequence[str], widths: Sequence[int], blank: Sequence[int], window: int) -> tuple[list[int], int]:
    """Which columns are shown in a window, and how wide the last one may be. Blank ones give way first."""
    columns = list(range(len(titles)))
    wanted = min(widths[-1], max(window // 3, _TITLE)) if widths else 0
    while True:
        room = window - sum(widths[place] + len(_GAP) for place in columns[:-1])
        optional = [place for place in columns[1:-1] if titles[place] not in _KEPT]
        empty = [place for place in optional if place in blank and room < widths[-1]]
        if not empty and (room >= wanted or not optional):
            return columns, max(room, 1)
        columns.remove((empty or optional)[-1])


def cut(text: str, width: int) -> str:
    """Text in so many characters: cut between words, where there are several."""
    if len(text) <= width:
        return text
    short = text[: max(width - 1, 0)]
    whole = short.rpartition(" ")[0] if not text[len(short) : len(short) + 1].isspace() else short
    return (whole or short).rstrip() + "…"


def _terminal_columns() -> int:
    return shutil.get_terminal_size().columns


def wrapped(text: str, indent: int, stream: Any = None) -> str:
    """Text for a terminal, its lines broken between words and indented; for anything else as it is."""
    if not (stream.isatty() if stream is not None else on_terminal()):
        return text
    width = max(_terminal_columns() - indent, 20)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [text]
    return f"\n{' ' * indent}".join(lines)


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """One thing in full, a fact a line; what is not known or empty is left out."""
    known = [(name, text) for name, value in facts if (text := _text(value))]
    width = max((len(name) for name, _ in known), default=0)
    for name, text in known:
        label = click.style(name.ljust(width), dim=True)
        click.echo(f"{label}{_GAP}{styled(wrapped(shown(text), width + len(_GAP)))}")


def _text(value: Any) -> str:
    if value is None or value is False or value in ("", (), [], {}):
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if value is True:
        return "yes"
    if isinstance(value, dict):
        import orjson

        return orjson.dumps(value).decode()
    return str(value)


def styled(text: str) -> str:
    """A word for a state in its colour; any other text as it is."""
    return click.style(text, fg=COLOURS[text]) if text in COLOURS else text


def tell(sentence: str, *, next_step: str | Step = "") -> None:
    """What was done, and what one can do next; the latter is for people, so it goes beside the output."""
    click.echo(sentence)
    if on_terminal():
        print_step(next_step if isinstance(next_step, Step) else Step(next_step))


def ago(moment: str | None, now: datetime | None = None) -> str:
    """How long ago a moment was, roughly: `4s ago`; or how far ahead: `in 4s`."""
    if not moment:
        return ""
    seconds = seconds_since(moment, now)
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"


def seconds_since(moment: str, now: datetime | None = None) -> float:
    """The seconds since a moment, by this machine's clock; less than zero for one that is ahead."""
    return ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()


def span(seconds: float) -> str:
    """A time in its largest unit: `4s`, `3h`."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
