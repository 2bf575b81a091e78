"""`redkey ledger`: dump, load, tail, replay and export ledgers."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import click
import msgspec
import orjson

from redkey.cli import INTERRUPTED
from redkey.cli.ledger_copy import copy_command
from redkey.cli.ledger_import import import_command
from redkey.cli.new_epoch import new_epoch
from redkey.cli.report import print_json, shown
from redkey.cli.screen import until_reader_leaves
from redkey.cli.store import STORE, STORE_OR_FILE, chosen_topic
from redkey.errors import BackupRefused, DumpRefused, ProofRefused
from redkey.ledger.event import event_of
from redkey.ledger.mirror import mirror_page
from redkey.ledger.note import encode_base64
from redkey.ledger.ports import Reader
from redkey.ledger.record import Record, hedera_time
from redkey.ledger.tail import records_after
from redkey.readmodel.digest import digest
from redkey.readmodel.structure import read as read_structure
from redkey.services.dump import LINE_LIMIT, Recorded, Structure, dump, read_dump, record_line
from redkey.services.load import Loaded, Loader
from redkey.services.replay import Replay
from redkey.stores.disk import new_folder
from redkey.stores.opening import open_store, store_at
from redkey.wire.decode import decode
from redkey.wire.envelope import wire_of

# The most rows of a topic in one answer of a mirror node.
MIRROR_PAGE = 100
_TOPIC = click.option("--topic", metavar="TOPIC", help="The topic; not needed where there is only one.")


@click.group()
def command() -> None:
    """Dump, load, tail, replay and export ledgers.

    A dump is JSON lines: each record with its wire, its place on the topic and its payer, and the structure that
    records name. It can be read without RedKey, and loaded again with every line checked.
    """


command.add_command(new_epoch)


@command.command("dump")
@click.argument("directory", metavar="STORE", type=STORE)
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; may be repeated [all].")
@click.option("--content", is_flag=True, help="Also the bodies that wires name, in pieces of 192 KiB.")
@click.option("--out", type=click.File("wb", lazy=True), default="-", help="A file [standard output].")
def dump_command(directory: str | Path, topics: tuple[str, ...], content: bool, out: IO[bytes]) -> None:
    """Write the ledger of STORE as JSON lines. A server may be running on it: the dump is of one moment.

    \b
      redkey ledger dump .redkey > ledger.jsonl
      redkey ledger dump .redkey --content --out ledger.jsonl

    The running hash is checked on the way: a damaged record ends the dump, and redkey fsck tells more. Secrets, API
    keys and checkpoints are not part of a dump; redkey backup keeps those.
    """
    with store_at(directory).inspect() as evidence:
        chosen = [chosen_topic(evidence, topic) for topic in topics] or evidence.topics()
        for line in dump(evidence, chosen, content=content):
            out.write(line)
        out.flush()


command.add_command(copy_command)


@command.command()
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
@click.pass_context
def load(ctx: click.Context, file: str, directory: Path, as_json: bool) -> None:
    """Make the data directory DIR from the dump in FILE (- is standard input). DIR must not be there.

    Every line is checked: sequence, time and running hash against the line before, each wire against its schema and
    its canonical bytes, structure and content against their hashes. The first wrong line is reported, and DIR is
    not created: it appears when the whole dump is loaded.

    The new store is a log of its own, with its own id and keys. API keys are not part of a dump.

    \b
      redkey ledger load ledger.jsonl restored
    """
    try:
        with new_folder(directory) as aside, open_store(aside) as store, click.open_file(file, "rb") as stream:
            loaded = Loader(store).load(_lines(stream))
    except KeyboardInterrupt:
        click.echo(f"redkey: stopped; {directory} was not made", err=True)
        ctx.exit(INTERRUPTED)
    if as_json:
        print_json({"directory": str(directory), **msgspec.structs.asdict(loaded)})
    else:
        click.echo(f"{directory}: {_told(loaded)}")


def _told(loaded: Loaded) -> str:
    what = f"{loaded.records:,} records of {loaded.topics:,} topics, {loaded.structures:,} structures"
    return f"{what}, {loaded.contents:,} bodies; {loaded.void:,} records are void"


command.add_command(import_command)


@command.command()
@click.argument("directory", metavar="STORE", type=STORE)
@_TOPIC
@click.option("-n", "--lines", "count", type=click.IntRange(min=0), default=10, show_default=True, help="How many.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is recorded from now on, by any process.")
@click.option("--json", "as_json", is_flag=True, help="Records as the lines of a dump.")
@until_reader_leaves()
def tail(directory: str | Path, topic: str | None, count: int, follow: bool, as_json: bool) -> None:
    """Show the last records of STORE: sequence, time, type, subject, actor.

    \b
      redkey ledger tail .redkey
      redkey ledger tail .redkey -n 0 --follow --json
    """
    with store_at(directory).inspect() as evidence:
        chosen = chosen_topic(evidence, topic)
        head = evidence.head(chosen).sequence
        _show(reversed(evidence.read_back(chosen, head + 1, count)), as_json=as_json)
    if follow:
        with suppress(KeyboardInterrupt), open_store(directory, create=False) as store:
            for batch in store.follow(chosen, head):
                _show(batch, as_json=as_json)


def _show(records: Iterable[Record], *, as_json: bool) -> None:
    for record in records:
        if as_json:
            sys.stdout.buffer.write(record_line(record, decode(record.wire)))
            continue
        try:
            event = event_of(record)
            what = f"{event.type:<22} {event.subject.type}:{event.subject.id}  by {event.actor.type}:{event.actor.id}"
            when = event.timestamp
        except ProofRefused as refused:
            what, when = f"{refused.message} ({len(record.wire)} bytes)", hedera_time(record.timestamp)
        click.echo(f"{record.sequence:>9}  {when}  {shown(what)}")
    sys.stdout.flush()


@command.command()
@click.argument("source", metavar="STORE|FILE", type=STORE_OR_FILE)
@_TOPIC
@click.option("--to", type=click.IntRange(min=0), help="Stop after this record [the last].")
def replay(source: str | Path, topic: str | None, to: int | None) -> None:
    """Fold a ledger from its first record on, and print the state it gives as one JSON document.

    The ledger is a data directory or a dump. The state is printed as rows, by kind and key; `digest` is the SHA-256 of
    all rows, for comparing two replays.

    \b
      redkey ledger replay .redkey --to 1000
      redkey ledger replay ledger.jsonl
    """
    if isinstance(source, str) or source.is_dir():
        chosen, found, rows = _replay_store(source, topic, to)
    else:
        chosen, found, rows = _replay_file(source, topic, to)
    if to is not None and found.head.sequence < to:
        raise click.UsageError(f"--to is {to}, the ledger ends at {found.head.sequence}")
    state: dict[str, dict[str, Any]] = {}
    for (kind, key), row in sorted(rows.items()):
        state.setdefault(kind, {})[key] = orjson.loads(row.body)
    print_json(
        {
            "topic_id": chosen,
            "sequence_number": found.head.sequence,
            "consensus_timestamp": hedera_time(found.head.timestamp),
            "running_hash": encode_base64(found.head.running_hash),
            "void": found.void,
            "digest": digest(rows.values()),
            "state": state,
        }
    )


def _replay_store(source: str | Path, topic: str | None, to: int | None) -> tuple[str, Replay, dict[Any, Any]]:
    with store_at(source).inspect() as evidence:
        chosen = chosen_topic(evidence, topic)

        def structure(sha256: str) -> Any:
            found = evidence.content(chosen, sha256)
            return read_structure(found) if found is not None else None

        found, rows = Replay(structure), {}
        for batch in records_after(evidence, chosen, 0):
            for record in batch if to is None else [one for one in batch if one.sequence <= to]:
                found.fold(record, wire_of(record.wire))
            rows.update({(row.kind, row.key): row for row in found.take_rows()})
            if to is not None and found.head.sequence >= to:
                break
        return chosen, found, rows


def _replay_file(source: Path, topic: str | None, to: int | None) -> tuple[str, Replay, dict[Any, Any]]:
    structures: dict[str, Any] = {}
    found, rows, chosen = Replay(structures.get), {}, topic
    with source.open("rb") as stream:
        for item in read_dump(_lines(stream)):
            if isinstance(item, Structure):
                structures[item.content.sha256] = read_structure(item.content)
            elif isinstance(item, Recorded):
                chosen = chosen or item.record.topic
                if item.record.topic == chosen and (to is None or item.record.sequence <= to):
                    found.fold(item.record, item.wire)
                    rows.update({(row.kind, row.key): row for row in found.take_rows()})
    if chosen is None or (not found.head.sequence and topic is not None):
        raise click.UsageError(f"{source} holds no records{f' of topic {topic}' if topic else ''}")
    return chosen, found, rows


@command.command()
@click.argument("directory", metavar="STORE", type=STORE)
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--mirror", is_flag=True, required=True, help="In the format of a Hedera mirror node's REST API.")
@_TOPIC
def export(directory: str | Path, out: Path, mirror: bool, topic: str | None) -> None:
    """Write the ledger of STORE as pages that any tool for Hedera topics can read, 100 messages each.

    OUT is a new folder of page files, or a file of JSON lines when its name ends in .jsonl. As a mirror node does,
    a full page links to the next by time, and the last one may be empty. Local topics are of shard 1, which is not
    Hedera's; nothing else differs.

    \b
      redkey ledger export --mirror .redkey pages
      redkey hcs verify pages/*.json
    """
    with store_at(directory).inspect() as evidence:
        pages = _pages(evidence, chosen_topic(evidence, topic))
        if out.suffix == ".jsonl":
            if out.exists():
                raise BackupRefused(f"{out} is there already, and nothing is overwritten", code="target_exists")
            with out.open("xb") as file:
                count = sum(1 for page in pages if file.write(orjson.dumps(page) + b"\n"))
        else:
            with new_folder(out) as aside:
                count = 0
                for count, page in enumerate(pages, start=1):
                    (aside / f"page-{count:06d}.json").write_bytes(orjson.dumps(page) + b"\n")
    click.echo(f"{out}: {count:,} pages; check them with: redkey hcs verify")


def _pages(evidence: Reader, topic: str) -> Iterator[dict[str, Any]]:
    after = 0
    while True:
        records: Sequence[Record] = evidence.read(topic, after, MIRROR_PAGE)
        full = len(records) == MIRROR_PAGE
        yield mirror_page(records, full=full)
        if not full:
            return
        after = records[-1].sequence


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a dump, each cut if it is too long for a valid line."""
    while line := stream.readline(LINE_LIMIT + 1):
        if len(line) > LINE_LIMIT:
            raise DumpRefused(f"a line has more than {LINE_LIMIT:,} bytes", code="line_too_long")
        yield line
