"""Progress on the command line: `redkey task progress`, and the display of reports in lists and live views."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.report import shown
from redkey.cli.screen import print_done
from redkey.cli.session import daily
from redkey.cli.values import extensions_option
from redkey.errors import NotFound

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.events import Event
    from redkey.shapes.tasks import Progress

_IN_PROGRESS = ("claimed", "working")


def progress_words(percent: int | None, text: str) -> str:
    """Return a report on one line: its percentage, then its text."""
    return " ".join(filter(None, ("" if percent is None else f"{percent}%", *text.split())))


def title_with_progress(title: str, state: str, progress: Progress | None) -> str:
    """Return the title of a task, with its progress while it is in progress."""
    if progress is None or state not in _IN_PROGRESS:
        return title
    return joined(title, progress.percent, progress.text)


def joined(title: str, percent: int | None, text: str) -> str:
    """Return a title with the percentage before it and the text after it.

    The last column of a table is cut in a narrow window, so the percentage comes first.
    """
    return " · ".join(filter(None, ("" if percent is None else f"{percent}%", title, " ".join(text.split()))))


def print_followed(rk: RedKey, event: Event, *, as_json: bool) -> None:
    """Print an event that a command follows, and below a progress report what it says."""
    from redkey.cli.events import print_event

    print_event(event, as_json=as_json)
    if event.type == "task.progress" and not as_json:
        words = progress_words(event.data.get("percent"), _text_of(rk, event.data.get("textRef")))
        click.echo(f"        {shown(words)}")
        sys.stdout.flush()


def _text_of(rk: RedKey, ref: Mapping[str, Any] | None) -> str:
    """Return the text of a report: it is content, and the event only has its hash."""
    if ref is None:
        return ""
    import orjson

    try:
        return str(orjson.loads(rk.content.get(ref["sha256"]))["text"])
    except NotFound:
        return "(erased)"


@click.command("progress")
@click.argument("task_id", metavar="TASK")
@click.argument("text", default="")
@click.option("--percent", type=click.IntRange(0, 100), metavar="N", help="How much of it is done, from 0 to 100.")
@extensions_option
@daily
def report(
    rk: RedKey, task_id: str, text: str, percent: int | None, extensions: dict[str, Any] | None, as_json: bool
) -> None:
    """Report progress on a task that you hold; everyone who watches the task sees it.

    \b
      redkey task progress TASK "Three of five sources read." --percent 60
    """
    if not text.strip() and percent is None:
        raise click.UsageError("give a text, --percent, or both")
    found = rk.tasks.get(task_id)
    if found.claim is None:
        raise click.ClickException(
            f"{found.task_id} is {found.state}: no agent holds it, so there is no progress to report. "
            f"Claim it first: redkey claim take {found.task_id} --agent AGENT"
        )
    said = rk.claims.report_progress(found.claim.claim_id, text, percent=percent, extensions=extensions)
    sentence = f"{said.task_id} has the report"
    if not said.recorded:
        again = f"again in {said.retry_after_seconds:.1f} s" if said.retry_after_seconds else "after raise-rules"
        sentence = f"{said.task_id} has not recorded it ({said.reason}): try {again}"
    print_done(said, sentence, as_json=as_json, next_step=f"redkey task watch {said.task_id}")
