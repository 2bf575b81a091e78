"""How daily commands show things: tables, facts and times for people, JSON for machines.

On a terminal there are colours, and the last column gives way when the window is narrow. Anywhere else the same
columns are plain text, whole, so that they can be cut and searched. What strangers wrote is escaped in both.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

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
_WIDEST = 60


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


def print_done(item: Any, sentence: str, *, as_json: bool, next_step: str = "") -> None:
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


def rich_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table for a terminal: ids are cut to what tells them apart, and the last column gives way."""
    from rich.table import Table
    from rich.text import Text

    rows = shorten(rows)

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for place, title in enumerate(titles):
        # Rich takes width only from columns that may wrap; no cell does, because each is cut at its end instead.
        last = place == len(titles) - 1
        widest = max((len(row[place]) for row in rows), default=0)
        table.add_column(title, no_wrap=not last, min_width=None if last else min(widest, _WIDEST))
    for row in rows:
        cells = [Text(shown(cell), COLOURS.get(cell, ""), no_wrap=True, overflow="ellipsis") for cell in row]
        table.add_row(*cells)
    return table


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """One thing in full, a fact a line; what is not known or empty is left out."""
    known = [(name, text) for name, value in facts if (text := _text(value))]
    width = max((len(name) for name, _ in known), default=0)
    for name, text in known:
        label = click.style(name.ljust(width), dim=True)
        click.echo(f"{label}{_GAP}{styled(shown(text))}")


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


def tell(sentence: str, *, next_step: str = "") -> None:
    """What was done, and what one can do next: the hint is for people, so it goes beside the output."""
    click.echo(sentence)
    if next_step and on_terminal():
        click.echo(click.style(f"next: {next_step}", dim=True), err=True)


def ago(moment: str | None, now: datetime | None = None) -> str:
    """How long ago a moment was, roughly: `4s ago`; or how far ahead: `in 4s`."""
    if not moment:
        return ""
    seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()
    return f"{_span(seconds)} ago" if seconds >= 0 else f"in {_span(-seconds)}"


def _span(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"
