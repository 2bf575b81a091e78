"""Output of the daily commands: tables, facts and times for people, JSON for programs.

On a terminal there are colours, and columns in the middle are left out if the window is narrow. Elsewhere all columns
are complete plain text, so that they can be cut and searched. Foreign text is escaped in both.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

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
# The colour of a state, in any cell.
COLOURS: Mapping[str, str] = {state: colour for colour, states in _STATES_BY_COLOUR.items() for state in states.split()}
_GAP = "  "
# Columns that every window shows, and the minimum width of the last column.
_KEPT = ("STATE",)
_TITLE = 16
# Fields of replies that are never shown again.
_SECRETS = ("api_key", "secret", "login_code")


def on_terminal() -> bool:
    """Whether the output goes to a terminal."""
    return sys.stdout.isatty()


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal."""
    return stream.isatty()


@contextmanager
def until_reader_leaves() -> Iterator[None]:
    """Treat a closed output pipe as a normal end, for lists and live views (`| head -n 1`).

    Do not use it around a verdict: there the exit code is the answer, and the reader has not seen it yet.
    """
    try:
        yield
    except BrokenPipeError:
        watch = select.poll()
        watch.register(sys.stdout, 0)
        if not watch.poll(0):
            # Another pipe broke, perhaps the connection to the server.
            raise
        # The interpreter flushes once more when it exits, and would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@until_reader_leaves()
def print_list(
    items: Iterable[Any],
    titles: Sequence[str],
    row: Any,
    *,
    as_json: bool,
    empty: str,
    ids_only: bool = False,
    id_of: Callable[[Any], str] | None = None,
) -> None:
    """Print a list.

    For people a table, or one sentence if it is empty; for programs a JSON object per line; for scripts only the ids,
    which are the first column unless `id_of` gives them.
    """
    if as_json:
        for item in items:
            print_item(item)
        return
    if ids_only:
        for item in items:
            click.echo(id_of(item) if id_of is not None else row(item)[0])
        return
    rows = [row(item) for item in items]
    if not rows:
        click.echo(empty, err=True)
        return
    print_table(titles, rows)


def print_item(item: Any) -> None:
    """Print one object as one line of JSON, with the field names of the API."""
    import msgspec

    print_json(msgspec.to_builtins(item))


def print_created(
    item: Any, new_id: str, sentence: str, *, ids_only: bool, as_json: bool, next_step: str | Step = ""
) -> None:
    """What a command created: as JSON, as its id alone, or as a sentence with the next step.

    A secret is shown only once, so with the id alone it goes beside the output and is not lost.
    """
    if not ids_only or as_json:
        print_done(item, sentence, as_json=as_json, next_step=next_step)
        return
    click.echo(new_id)
    for name in _SECRETS:
        if secret := getattr(item, name, None):
            click.echo(f"{name.replace('_', ' ')}, shown only now: {secret}", err=True)


def print_done(item: Any, sentence: str, *, as_json: bool, next_step: str | Step = "") -> None:
    """Print the result of a command: the server's answer as JSON, or a sentence and the next step."""
    if as_json:
        print_item(item)
    else:
        tell(sentence, next_step=next_step)


def print_details(item: Any, facts: Iterable[tuple[str, Any]], *, as_json: bool) -> None:
    """Print one object in full: the server's answer as JSON, or one fact per line."""
    if as_json:
        print_item(item)
    else:
        print_facts(facts)


@until_reader_leaves()
def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on standard output."""
    if on_terminal():
        from rich.console import Console

        Console(highlight=False).print(rich_table(titles, rows))
        return
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in [titles, *cells]) for place in range(len(titles))]
    for line in [titles, *cells]:
        click.echo(_GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def rich_table(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> Table:
    """Build a table for a terminal: ids are shortened, and no cell wraps.

    In a narrow window, the last column keeps a minimum width: columns in the middle are left out, the last of them
    first.
    """
    from rich.table import Table
    from rich.text import Text

    rows = [[shown(cell) for cell in row] for row in shorten(rows)]
    widths = [max([len(title), *(len(row[place]) for row in rows)]) for place, title in enumerate(titles)]
    blank = [place for place in range(len(titles)) if not any(row[place] for row in rows)]
    columns, room = _columns(titles, widths, blank, width or terminal_columns())
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place in columns:
        table.add_column(titles[place], no_wrap=True)
    for row in rows:
        cells = [cut(row[place], room) if place == columns[-1] else row[place] for place in columns]
        table.add_row(*(Text(cell, COLOURS.get(cell, ""), no_wrap=True, overflow="ellipsis") for cell in cells))
    return table


def _columns(titles: Sequence[str], widths: Sequence[int], blank: Sequence[int], window: int) -> tuple[list[int], int]:
    """Choose the columns for a window, and the width of the last one. Blank columns are left out first."""
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
    """Cut text to a number of characters, between words if possible."""
    if len(text) <= width:
        return text
    short = text[: max(width - 1, 0)]
    whole = short.rpartition(" ")[0] if not text[len(short) : len(short) + 1].isspace() else short
    return (whole or short).rstrip() + "…"


def terminal_columns() -> int:
    """Return the width of the window, or the value of COLUMNS."""
    return shutil.get_terminal_size().columns


def wrapped(text: str, indent: int, stream: TextIO | None = None) -> str:
    """Wrap text between words and indent it on a terminal; elsewhere return it unchanged."""
    if not (is_terminal(stream) if stream is not None else on_terminal()):
        return text
    width = max(terminal_columns() - indent, 20)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [text]
    return f"\n{' ' * indent}".join(lines)


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """Print one object in full, one fact per line; unknown or empty facts are left out."""
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
    """Colour a word for a state; return any other text unchanged."""
    return click.style(text, fg=COLOURS[text]) if text in COLOURS else text


def tell(sentence: str, *, next_step: str | Step = "") -> None:
    """Print the result, and the next step on standard error, because it is for people."""
    click.echo(sentence)
    if on_terminal():
        print_step(next_step if isinstance(next_step, Step) else Step(next_step))


def ago(moment: str | None, now: datetime | None = None) -> str:
    """Format how long ago a moment was, roughly (`4s ago`), or how far ahead it is (`in 4s`)."""
    if not moment:
        return ""
    seconds = seconds_since(moment, now)
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(-seconds)}"


def seconds_since(moment: str, now: datetime | None = None) -> float:
    """Return the seconds since a moment, by this machine's clock; negative if it is in the future."""
    return ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()


def span(seconds: float) -> str:
    """Format a duration in its largest unit: `4s`, `3h`."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
