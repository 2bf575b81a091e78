"""`redkey fsck`: check a data directory, trusting nothing in it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from redkey.cli import INTERRUPTED
from redkey.cli.keys import log_key_option
from redkey.cli.report import print_json, shown
from redkey.cli.store import STORE, shown_store
from redkey.errors import StoreError, StoreRefused
from redkey.ledger.receipt import RECEIPT_LIMIT
from redkey.services.fsck.check import Fsck, Progress
from redkey.services.fsck.report import Fault, Report
from redkey.stores.opening import store_at

_SHOWN = 50
DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("store", metavar="STORE", type=STORE)
@click.option("--receipts", type=DIRECTORY, help="A folder of receipts, proofs and checkpoints to compare with it.")
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="A log's verifier key that must have signed, or a file."
)
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Check only this topic; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    store: str | Path,
    receipts: Path | None,
    keys: tuple[str, ...],
    topics: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check STORE, a data directory or the URL of a database, trusting nothing in it. Servers may be running on it.

    Checked are the database, the running hash and time of every record, the Merkle tiles, every checkpoint and who
    signed it, every wire, its stream and its content, the event index, and that replay from the first record gives
    the rows and counters that are stored. Each damaged record is named.

    A ledger without its last records looks complete. Receipts that others keep reveal it: give them with --receipts.
    Without --key, the signers are those that the ledger itself names.

    \b
      redkey fsck .redkey
      redkey fsck .redkey --receipts ~/receipts --key log.pub --json
      redkey fsck postgresql://redkey@db.example.com/redkey

    Exit code 0: nothing is wrong. 1: something is, and it is named. 2: there is nothing here that can be checked.
    """
    trusted = log_key_option(keys)
    began = time.monotonic()
    try:
        report = _run(store, receipts, trusted, topics, as_json=as_json)
    except KeyboardInterrupt:
        click.echo("redkey: stopped before the end; nothing was changed", err=True)
        ctx.exit(INTERRUPTED)
    seconds = time.monotonic() - began
    if as_json:
        print_json({"directory": shown_store(store), **_as_json(report), "seconds": round(seconds, 3)})
    else:
        _print(shown_store(store), report, seconds)
    ctx.exit(0 if report.clean else 1)


def _run(store: str | Path, receipts: Path | None, keys: Any, topics: tuple[str, ...], *, as_json: bool) -> Report:
    try:
        evidence = store_at(store).inspect()
    except StoreError as refused:
        if isinstance(refused, StoreRefused) and refused.code != "not_redkey":
            raise click.UsageError(f"{refused.message} [{refused.code}]") from refused
        report = Report()
        report.add("database_damaged", refused.message)
        return report
    with evidence, progress_bar(shown=not as_json) as progress:
        unknown = [topic for topic in topics if topic not in evidence.topics()]
        if unknown:
            raise click.UsageError(f"there is no topic {unknown[0]} in {shown_store(store)}")
        check = Fsck(evidence, keys=keys, progress=progress)
        if receipts is not None:
            check.hold_against(_documents(receipts))
        return check.run(topics)


def _documents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= RECEIPT_LIMIT:
            yield str(path.relative_to(folder)), path.read_bytes()


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[Progress | None]:
    """A progress bar on a terminal, and nothing elsewhere."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("records"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("records", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "clean": report.clean,
        "checked": dict(sorted(report.figures.items())),
        "errors": dict(sorted(report.errors.items())),
        "faults": msgspec.to_builtins(report.faults),
        "notes": msgspec.to_builtins(report.notes),
    }


def _print(directory: str, report: Report, seconds: float) -> None:
    for colour, found in (("yellow", report.notes), ("red", report.faults)):
        for fault in found[:_SHOWN]:
            click.echo(_line(fault, colour))
        if len(found) > _SHOWN:
            click.echo(f"and {len(found) - _SHOWN:,} more of these; --json lists up to 1,000")
    figures = ", ".join(f"{what} {count:,}" for what, count in report.figures.items())
    rate = f" in {seconds:.1f} s ({report.figures['records'] / seconds:,.0f} records/s)" if seconds > 0.05 else ""
    click.echo(f"{directory}: {figures or 'nothing was read'}{rate}")
    if report.clean:
        click.echo(click.style("clean", fg="green"))
        return
    counts = ", ".join(f"{code} {count:,}" for code, count in sorted(report.errors.items()))
    click.echo(f"{click.style('damaged', fg='red')}: {counts}")
    click.echo("keep a copy of it as it is, then restore a backup with: redkey restore BACKUP NEW_DIR")


def _line(fault: Fault, colour: str) -> str:
    where = f"topic {fault.topic} " if fault.topic else ""
    where += f"record {fault.sequence} " if fault.sequence else ""
    return f"{where}{click.style(fault.code, fg=colour)}: {shown(fault.message)}"
