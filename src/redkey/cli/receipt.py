"""`redkey receipt`: where receipts come from, and what one proves on nothing but its file and the caller's keys."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

import click
import msgspec

from redkey.cli.documents import FILE, decode_document
from redkey.cli.keys import log_key_option, witness_key_option
from redkey.cli.report import print_json, shown
from redkey.cli.screen import wrapped
from redkey.cli.session import connected
from redkey.cli.store import STORE
from redkey.errors import JsonRefused, ProofRefused
from redkey.ledger.checkpoint import Checkpoint
from redkey.ledger.mirror import MirrorRow, parse_row, rows_in
from redkey.ledger.note import encode_base64
from redkey.ledger.ordered import Compute
from redkey.ledger.proof import HEADER, parse_proof
from redkey.ledger.receipt import RECEIPT_LIMIT, read_extra
from redkey.ledger.verify import (
    LEVELS,
    Policy,
    Verdict,
    nothing_holds,
    verify_proof,
    verify_receipt,
    verify_record_proof,
)

if TYPE_CHECKING:
    from redkey.client import RedKey

_MIRROR_LIMIT = 64 * 1024 * 1024


@click.group()
def command() -> None:
    """Get receipts from a server or a data directory, and verify them offline."""


@command.command()
@click.argument("event_id", metavar="EVENT_ID")
@click.option("--content", is_flag=True, help="Put the bodies that the wire names into the receipt.")
@click.option("--out", type=click.File("wb", lazy=True), default="-", help="A file [standard output].")
@connected
def get(rk: RedKey, event_id: str, content: bool, out: IO[bytes]) -> None:
    """Write the receipt of an event, with everything that is needed to verify it offline.

    \b
      redkey receipt get evt_01JTMX9A2B3C4D5E6F7G8H9JKM --out receipt.json
      redkey receipt verify receipt.json --key log.pub
    """
    out.write(rk.receipts.get(event_id, content=content or None).document)
    out.flush()


@command.command("keys")
@connected
def keys_command(rk: RedKey) -> None:
    """Print the log's verifier keys, one a line.

    Hand them on by a way you trust: whoever verifies must have them from somewhere else than the receipt.

    \b
      redkey receipt keys > log.pub
    """
    for key in rk.checkpoints.latest().keys:
        click.echo(key)


@command.command()
@click.argument("directory", metavar="STORE", type=STORE)
@click.argument("event_id", metavar="EVENT_ID")
@click.option("--topic", metavar="TOPIC", help="The topic; all are looked through when it is not given.")
@click.option("--content", is_flag=True, help="Put the bodies that the wire names into the receipt.")
@click.option("--tlog-proof", "bare", is_flag=True, help="The proof alone, as C2SP tlog-proof text.")
@click.option("--url", default="http://127.0.0.1:8700", show_default=True, help="Where receipts can be fetched.")
@click.option("--out", type=click.File("wb", lazy=True), default="-", help="A file [standard output].")
def export(
    directory: str | Path, event_id: str, topic: str | None, content: bool, bare: bool, url: str, out: IO[bytes]
) -> None:
    """Write the receipt of an event in STORE, a data directory or the URL of a database, without a server.

    A checkpoint is signed at once when none covers the event yet, so this needs the log's keys. EVENT_ID is as the
    API gives it (evt_...), the beginning of it, or a wire id.

    \b
      redkey receipt export .redkey evt_01JTMX9A2B3C4D5E6F7G8H9JKM --out receipt.json
      redkey receipt verify receipt.json --key .redkey/keys/signer-0001.pub
    """
    # Only here: whoever verifies needs no store.
    from redkey.cli.receipt_export import exported

    out.write(exported(directory, event_id, topic, url, content=content, bare=bare))
    out.flush()


@command.command()
@click.argument("file", type=FILE)
@click.option("--key", "keys", multiple=True, metavar="KEY", help="A log's verifier key, or a file of such keys.")
@click.option("--witness", "witnesses", multiple=True, metavar="KEY", help="A witness's verifier key, or a file.")
@click.option("--witness-quorum", "quorum", type=click.IntRange(min=1), help="How many witnesses are enough [all].")
@click.option("--mirror", "mirrors", multiple=True, metavar="FILE|URL", help="A mirror's answer, or a mirror to ask.")
@click.option(
    "--structures", type=click.File("rb"), metavar="FILE", help="A dump with structure that an ordered workspace names."
)
@click.option("--leaf", type=FILE, help="For a bare proof: the file whose bytes are the leaf.")
@click.option("--record", type=FILE, help="For a bare proof: JSON with `wire` and `internal`, as in a receipt.")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
@click.pass_context
def verify(
    ctx: click.Context,
    file: str,
    keys: tuple[str, ...],
    witnesses: tuple[str, ...],
    quorum: int | None,
    mirrors: tuple[str, ...],
    structures: IO[bytes] | None,
    leaf: str | None,
    record: str | None,
    as_json: bool,
) -> None:
    """Say what the receipt in FILE proves; no server, account or network is needed.

    Four levels are reported, each with its reason. integrity: the record is in the tree of the checkpoint, and
    everything the receipt says follows from it. signed: a key that you gave signed that checkpoint and the
    receipt. witnessed: the witnesses that you gave cosigned it. anchored: the mirror that you named, or its answer
    that you saved, shows it on a public topic; where the topic orders the workspace, the record was computed again
    from its messages (save them from 1 on). Keys that come with a receipt prove nothing. Only --mirror URL uses the
    network.

    KEY is a C2SP verifier key (name+id+base64) or a file with one a line; `KEY retired SIZE` in such a file
    says that a key signs no checkpoint of that size or above. FILE may also be a C2SP tlog-proof.

    Exit code 0: integrity and every level you gave keys or answers for hold. 1: one of them does not.
    """
    policy = Policy(
        keys=tuple(log_key_option(keys)),
        witnesses=tuple(witness_key_option(witnesses)),
        quorum=quorum,
        mirror=(rows := tuple(row for place in mirrors for row in _mirror_rows(place, file))),
        compute=_computing(mirrors, rows, structures),
    )
    if quorum is not None and quorum > len(policy.witnesses):
        raise click.UsageError(f"--witness-quorum is {quorum}, but {len(policy.witnesses)} witnesses were given")
    verdict = _verdict(_read(file), policy, leaf, record)
    passed = verdict.holds(*policy.asked)
    if as_json:
        print_json({"file": file, "passed": passed, "asked": policy.asked, **_as_json(verdict)})
    else:
        _print(file, verdict, policy, passed=passed)
    ctx.exit(0 if passed else 1)


def _verdict(data: bytes, policy: Policy, leaf: str | None, record: str | None) -> Verdict:
    if not data.startswith(HEADER.encode() + b"\n"):
        if leaf or record:
            raise click.UsageError("--leaf and --record are for a bare tlog-proof, not for a receipt")
        return verify_receipt(data, policy)
    try:
        proof = parse_proof(data)
        if leaf:
            return verify_proof(proof, _read(leaf), policy)
        if not record and not proof.extra:
            raise click.UsageError("a bare proof does not say what it proves: give --leaf or --record")
        return verify_record_proof(proof, *read_extra(_read(record) if record else proof.extra), policy)
    except ProofRefused as refused:
        return nothing_holds(*refused.findings())


def _mirror_rows(place: str, receipt: str) -> list[MirrorRow]:
    """The rows of a saved answer; or those that a mirror at a URL shows at the place that the receipt names."""
    if not place.startswith(("http://", "https://")):
        return _rows(place)
    from redkey.cli.anchor_rows import fetched_rows

    if receipt == "-":
        raise click.UsageError("--mirror URL needs the receipt in a file, not on standard input")
    return fetched_rows(place, _read(receipt))


def _computing(mirrors: tuple[str, ...], rows: tuple[MirrorRow, ...], structures: IO[bytes] | None) -> Compute | None:
    """What computes records of workspaces that a network orders, where a mirror or its answer was named."""
    if not mirrors:
        return None
    from redkey.cli.ordered_proof import computing

    url = next((place for place in mirrors if place.startswith(("http://", "https://"))), None)
    return computing(url, rows, structures)


def _rows(path: str) -> list[MirrorRow]:
    try:
        return [parse_row(value, place) for place, value in rows_in(decode_document(_read(path), _MIRROR_LIMIT), path)]
    except (JsonRefused, ProofRefused) as refused:
        raise click.UsageError(f"--mirror {path}: {refused.message} [{refused.code}]") from refused


def _read(path: str) -> bytes:
    try:
        with click.open_file(path, "rb") as stream:
            data: bytes = stream.read(RECEIPT_LIMIT + 1)
            return data
    except OSError as cause:
        raise click.UsageError(f"{path} cannot be read: {cause.strerror}") from cause


def _as_json(verdict: Verdict) -> dict[str, object]:
    return {
        "levels": {name: {"holds": level.holds, "why": level.why} for name, level in verdict.levels.items()},
        "findings": [finding.as_json() for finding in verdict.findings],
        "event": msgspec.to_builtins(verdict.event),
        "effect": verdict.effect and msgspec.to_builtins(verdict.effect),
        "checkpoint": verdict.checkpoint and _checkpoint(verdict.checkpoint),
    }


def _checkpoint(checkpoint: Checkpoint) -> dict[str, object]:
    return {"origin": checkpoint.origin, "size": checkpoint.size, "root": encode_base64(checkpoint.root)}


def _print(file: str, verdict: Verdict, policy: Policy, *, passed: bool) -> None:
    event = verdict.event
    told = (
        f"{event.type} {event.event_id}, record {event.sequence} of {event.timestamp}" if event else "nothing is proven"
    )
    click.echo(wrapped(f"{file}: {told}", 2))
    for name in LEVELS:
        level = verdict.levels[name]
        colour = "green" if level.holds else "red" if name in policy.asked else "yellow"
        holds = click.style(f"{'holds' if level.holds else 'does not hold':<13}", fg=colour)
        click.echo(f"  {name:<10} {holds}  {wrapped(shown(level.why), 28)}")
    for finding in verdict.findings:
        text = f"{shown(finding.pointer) or '/'}: {shown(finding.message)}"
        click.echo(f"  {click.style(finding.code, fg='red')}: {wrapped(text, 4 + len(finding.code))}")
    if verdict.effect and verdict.levels["integrity"].holds:
        vouched = "signed by the log" if verdict.levels["signed"].holds else "nobody vouched for this"
        reason = f" ({verdict.effect.reason})" if verdict.effect.reason else ""
        click.echo(shown(f"  effect     {verdict.effect.status}{reason}, {vouched}"))
    if verdict.holds("signed") and not verdict.holds("witnessed") and not verdict.holds("anchored"):
        note = "only a witness or an anchor shows that the log's operator has no second history"
        click.echo(f"  note       {wrapped(note, 13)}")
    if not passed:
        click.echo("refused: not every level that was asked for holds")
