"""`redkey wire`: validate, lift and replay Agent Wire messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from redkey.cli.documents import FILE, decode_document, documents
from redkey.cli.report import Checked, print_findings, print_json, report
from redkey.errors import Finding, JsonRefused, WireRefused
from redkey.wire import legacy
from redkey.wire.canonical import canonical
from redkey.wire.lint import lint_wire
from redkey.wire.validate import MESSAGE_LIMIT, drop_nulls, read, validate

if TYPE_CHECKING:
    from redkey.cli.structures import Structures

# A list of wires is read whole; larger logs must be JSON lines, which have no size limit.
SIZE_LIMIT = 16 * 1024 * 1024


@click.group()
def command() -> None:
    """Validate, lift and replay Agent Wire messages.

    A document is a wire, a list of wires or a record of a ledger dump. Files hold one document or JSON lines of
    them; `-` reads standard input. Exit 0 when all is valid, 1 when something is not, 2 for wrong use.
    """


@command.command("validate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per document.")
@click.option("--quiet", "-q", is_flag=True, help="Print only errors and the number of valid documents.")
@click.pass_context
def validate_files(ctx: click.Context, files: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Check wires against the contracts of their version, 1.0 or 1.1.

    Memory is bounded by one document, so a file of JSON lines may be of any size.
    """
    checked = (_check(name, data) for name, data in documents(files, SIZE_LIMIT))
    ctx.exit(0 if report(checked, as_json=as_json, quiet=quiet) else 1)


@command.command("lift")
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per message: wires, content, lost, assumed.")
@click.option(
    "--content",
    metavar="DIRECTORY",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to keep what people wrote: one file per document, named by its SHA-256.",
)
@click.pass_context
def lift_file(ctx: click.Context, file: str, as_json: bool, content: Path | None) -> None:
    """Lift older wires to 1.1, taking the messages of a file as one log, in order.

    The wires go to standard output as JSON lines; what was lost or assumed on the way goes to standard error.
    """
    from redkey.wire.lift import Log, lift

    log, good = Log(), True
    for name, data in documents([file], SIZE_LIMIT):
        try:
            lifted = [lift(wire, log) for _, wire in _wires(decode_document(data, SIZE_LIMIT))]
        except (JsonRefused, WireRefused) as refused:
            good = _complain(name, refused, as_json)
            continue
        for one in lifted:
            if content is not None:
                _keep(content, {item.ref["sha256"]: item.data for item in one.content})
            if as_json:
                print_json({"file": name, **one.as_json()})
                continue
            print_findings(Checked(name, (*one.lost, *one.assumed)), err=True)
            for wire in one.wires:
                print_json(wire)
    ctx.exit(0 if good else 1)


@command.command("replay")
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="The state as canonical JSON, and findings as JSON too.")
@click.pass_context
def replay_file(ctx: click.Context, file: str, as_json: bool) -> None:
    """Fold wires in the order given and print the state of tasks, artifacts and projects as JSON.

    Wires must be valid 1.1. A wire that is only void by state is kept, with its reason, as in a ledger. A file with
    an invalid wire has no state: all errors are reported instead.
    """
    from redkey.cli.structures import Structures
    from redkey.reducers.replay import Replayed
    from redkey.wire.envelope import wire_from

    structures = Structures()
    state, good = Replayed(structures.outputs), True
    for name, data in documents([file], SIZE_LIMIT):
        try:
            wires = _read(data, structures)
        except (JsonRefused, WireRefused) as refused:
            good = _complain(name, refused, as_json)
            continue
        for wire in map(wire_from, wires if good else ()):
            structures.note(wire)
            state.apply(wire)
    if good:
        told = state.as_json()
        click.echo(canonical(told) if as_json else orjson.dumps(told, option=orjson.OPT_INDENT_2))
    ctx.exit(0 if good else 1)


def _check(name: str, data: bytes) -> Checked:
    try:
        wires = _read(data)
        return Checked(name, kind=f"Agent Wire 1.1 {wires[0]['type']}" if len(wires) == 1 else f"{len(wires)} wires")
    except JsonRefused as refused:
        return Checked(name, tuple(refused.findings()))
    except WireRefused:
        return _look_closer(name, decode_document(data, SIZE_LIMIT))


def _look_closer(name: str, value: Any) -> Checked:
    """Check a document that is not entirely valid 1.1: wires of 1.0 are checked against their own contracts."""
    found: list[Finding] = []
    versions = set()
    for pointer, wire in _wires(value):
        old = isinstance(wire, dict) and wire.get("wire") == legacy.VERSION
        versions.add(legacy.VERSION if old else "1.1")
        problems = legacy.validate_wire_1_0(wire) if old else validate(wire)
        # The server applies these rules of prose too, so a wire that passes here is not refused there.
        found += _at(pointer, problems or (lint_wire(legacy.read_wire_1_0(wire)) if old else []))
    if isinstance(value, list):
        return Checked(name, tuple(found), f"{len(value)} wires")
    return Checked(name, tuple(found), f"Agent Wire {versions.pop()} {value['type']}" if not found else "")


def _read(data: bytes, structures: Structures | None = None) -> list[dict[str, Any]]:
    """Return the wires of a document if all are valid 1.1; otherwise refuse with pointers into the document.

    A line of a dump with structure or content has no wires; structure is passed to the collector.
    """
    if len(data) <= MESSAGE_LIMIT:
        try:
            return [read(data.strip())]
        except (JsonRefused, WireRefused):
            pass  # It may be a list or a record; the code below also reports what is wrong.
    value = decode_document(data, SIZE_LIMIT)
    if _is_beside(value):
        if structures is not None and "structure" in value:
            structures.take(value)
        return []
    wires = list(_wires(value))
    found = [finding for pointer, wire in wires for finding in _at(pointer, validate(wire))]
    if found:
        raise WireRefused(found)
    return [drop_nulls(wire) for _, wire in wires]


def _wires(value: Any) -> Iterator[tuple[str, Any]]:
    """Return the wires of a document, each with its pointer."""
    items = [(f"/{index}", item) for index, item in enumerate(value)] if isinstance(value, list) else [("", value)]
    for pointer, item in items:
        is_record = isinstance(item, dict) and isinstance(item.get("wire"), dict)
        yield (f"{pointer}/wire", item["wire"]) if is_record else (pointer, item)


def _is_beside(value: Any) -> bool:
    """Whether a line of a ledger dump is not a record, but content or structure that records name by hash."""
    return isinstance(value, dict) and value.keys() in (
        {"structure", "sha256", "topic_id"},
        {"content", "sha256", "topic_id"},
    )


def _at(pointer: str, findings: list[Finding]) -> list[Finding]:
    return [replace(finding, pointer=pointer + finding.pointer) for finding in findings] if pointer else findings


def _complain(name: str, refused: JsonRefused | WireRefused, as_json: bool) -> bool:
    """Report why a document is invalid; always return false."""
    checked = Checked(name, tuple(refused.findings()))
    if as_json:
        print_json(checked.as_json())
    else:
        print_findings(checked, err=True)
    return False


def _keep(folder: Path, texts: dict[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in texts.items():
            (folder / f"{name}.json").write_bytes(data)
    except OSError as cause:
        raise click.UsageError(f"{click.format_filename(folder)} cannot be written: {cause.strerror}") from cause
