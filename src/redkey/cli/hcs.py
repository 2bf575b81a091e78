"""`redkey hcs verify`: check the running hashes of saved Hedera messages of any topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import click
import msgspec

from redkey.cli.documents import FILE, decode_document, documents
from redkey.cli.report import print_json, shown
from redkey.errors import JsonRefused, ProofRefused
from redkey.ledger.mirror import WINDOW, Judged, RowChecker, parse_row, rows_in

DOCUMENT_LIMIT = 64 * 1024 * 1024
LISTED = 1000


class Listed(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A row in the report."""

    place: str
    code: str
    message: str
    topic_id: str = ""
    sequence_number: int = 0

    def __str__(self) -> str:
        row = f"topic {self.topic_id} row {self.sequence_number}" if self.topic_id else "a row"
        return shown(f"{self.place}: {row}: {self.code}: {self.message}")


class Topic(msgspec.Struct):
    """The results for one topic."""

    first: int
    last: int
    verified: int = 0
    unchecked: int = 0
    bad: int = 0
    repeated: int = 0
    chunked: int = 0

    @property
    def missing(self) -> int:
        """Return how many rows are missing between the first and the last."""
        return self.last - self.first + 1 - self.verified - self.unchecked - self.bad


class Tally(msgspec.Struct):
    """Counts by topic, and the first rows that were bad or could not be checked."""

    topics: dict[str, Topic] = msgspec.field(default_factory=dict)
    malformed: int = 0
    bad: list[Listed] = msgspec.field(default_factory=list)
    unchecked: list[Listed] = msgspec.field(default_factory=list)

    def count(self, judged: Judged) -> None:
        row = judged.row
        topic = self.topics.setdefault(row.topic, Topic(row.sequence, row.sequence))
        topic.first, topic.last = min(topic.first, row.sequence), max(topic.last, row.sequence)
        topic.chunked += row.chunked
        setattr(topic, judged.status, getattr(topic, judged.status) + 1)
        listed = {"bad": self.bad, "unchecked": self.unchecked}.get(judged.status)
        if listed is not None and len(listed) < LISTED:
            listed.append(Listed(row.place, judged.code, judged.message, row.topic, row.sequence))

    def refuse(self, place: str, code: str, message: str) -> None:
        self.malformed += 1
        if len(self.bad) < LISTED:
            self.bad.append(Listed(place, code, message))

    def total(self, name: str) -> int:
        return sum(getattr(topic, name) for topic in self.topics.values())

    @property
    def valid(self) -> bool:
        """Whether nothing was bad and something was checked: a file without rows proves nothing."""
        return self.malformed == self.total("bad") == 0 and self.total("verified") > 0

    @property
    def complete(self) -> bool:
        """Whether every row from the first of its topic on is present and was checked."""
        return self.valid and self.total("unchecked") == self.total("missing") == 0


@click.group()
def command() -> None:
    """Verify saved Hedera Consensus Service messages."""


@command.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--strict", is_flag=True, help="Fail also when a row is missing or could not be checked.")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
@click.pass_context
def verify(ctx: click.Context, files: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Check the running hash of every message in FILES, without any network.

    FILES are answers of a mirror node's REST interface, as saved from
    /api/v1/topics/ID/messages: one page, a list of pages or of rows, or JSON lines of either; - is standard
    input. Pages may come in any order and overlap.

    A message is checked against the one before it, so the first of a range can only be checked when it is the
    first of its topic; the report says which rows had no predecessor. Only running hash version 3 is known, and
    chunk information is not covered by it. Rows are matched within the last 100,000 of them; one JSON document
    has at most 64 MiB, and JSON lines may go on without end.

    With --strict the files must hold each topic from its first message on, without a gap.

    Exit code 0: rows were checked and none is bad. 1: a row is bad, or there was nothing to check; with --strict also
    when a row is missing or was not checked.
    """
    tally = tally_rows(files)
    valid = tally.complete if strict else tally.valid
    if as_json:
        print_json({**_as_json(tally), "valid": valid})
    else:
        _print(tally)
        if tally.valid and not valid:
            counts = f"{tally.total('missing')} missing, {tally.total('unchecked')} unchecked"
            click.echo(f"{click.style('incomplete', fg='red')}: {counts}; --strict asks for all rows from the first on")
    ctx.exit(0 if valid else 1)


def tally_rows(files: Iterable[str]) -> Tally:
    """Judge and count every row of the files; return the bad rows by topic and sequence."""
    tally, checker = Tally(), RowChecker(WINDOW)
    for judged in chain(_judged(files, checker, tally), checker.finish()):
        tally.count(judged)
    for listed in (tally.bad, tally.unchecked):
        listed.sort(key=lambda one: (one.topic_id, one.sequence_number))
    return tally


def _judged(files: Iterable[str], checker: RowChecker, tally: Tally) -> Iterator[Judged]:
    for name, data in documents(files, DOCUMENT_LIMIT):
        try:
            for place, value in rows_in(decode_document(data.rstrip(), DOCUMENT_LIMIT), name):
                try:
                    row = parse_row(value, place)
                except ProofRefused as refused:
                    tally.refuse(place, refused.code, refused.message)
                else:
                    yield from checker.add(row)
        except (JsonRefused, ProofRefused) as refused:
            tally.refuse(name, refused.code, refused.message)


def _as_json(tally: Tally) -> dict[str, Any]:
    counts = {name: tally.total(name) for name in ("verified", "unchecked", "missing", "repeated", "chunked")}
    return {
        "valid": tally.valid,
        **counts,
        "bad": tally.total("bad") + tally.malformed,
        "firstBad": msgspec.to_builtins(tally.bad[0]) if tally.bad else None,
        "badRows": msgspec.to_builtins(tally.bad),
        "uncheckedRows": msgspec.to_builtins(tally.unchecked),
        "topics": msgspec.to_builtins(tally.topics),
    }


def _print(tally: Tally) -> None:
    for name, topic in sorted(tally.topics.items()):
        chunked = f", {topic.chunked} chunked (chunk information is not hashed)" if topic.chunked else ""
        repeated = f", {topic.repeated} repeated" if topic.repeated else ""
        missing = f", {topic.missing} missing" if topic.missing else ""
        counts = f"{topic.verified} verified, {topic.unchecked} unchecked, {topic.bad} bad{missing}{repeated}{chunked}"
        click.echo(f"topic {name}: rows {topic.first} to {topic.last}: {counts}")
    for one in tally.unchecked[:20]:
        click.echo(f"  {click.style('unchecked', fg='yellow')} {one}")
    if len(tally.unchecked) > 20:
        click.echo(f"  and {tally.total('unchecked') - 20} more unchecked")
    if tally.bad:
        click.echo(f"{click.style('first bad row', fg='red')}: {tally.bad[0]}")
        for one in tally.bad[1:20]:
            click.echo(f"  {click.style('bad', fg='red')} {one}")
        bad = tally.total("bad") + tally.malformed
        if bad > 20:
            click.echo(f"  and {bad - 20} more bad")
    elif not tally.valid:
        click.echo("there was nothing that could be checked")
