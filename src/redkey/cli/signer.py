"""`redkey signer`: the keys that sign a log's checkpoints, and what witnesses say of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from redkey.cli.documents import FILE
from redkey.cli.keys import witness_key_option
from redkey.cli.report import print_json, shown
from redkey.cli.screen import print_done
from redkey.cli.session import ids_option, json_option
from redkey.cli.store import STORE, chosen_topic
from redkey.errors import LedgerError
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.note import NOTE_LIMIT
from redkey.ledger.witness import Request
from redkey.services.acts import directly
from redkey.services.log_facts import signer_terms
from redkey.services.signing import Signing
from redkey.stores.opening import OpenStore, open_signing, open_store

_DIR = click.argument("directory", metavar="STORE", type=STORE)
_TOPIC = click.option("--topic", metavar="TOPIC", help="The topic; not needed where there is only one.")


@click.group()
def command() -> None:
    """Rotate the keys that sign a log's checkpoints, and bring checkpoints to witnesses.

    A server may be running on the data directory: it sees a rotation before it signs the next checkpoint.
    """


@command.command("list")
@_DIR
@_TOPIC
@ids_option
@json_option
def list_signers(directory: str | Path, topic: str | None, ids_only: bool, as_json: bool) -> None:
    """Print the current verifier keys, to be published, and what the ledger records about all signers."""
    with _opened(directory) as (store, signing):
        for signer in signing.signers:
            if as_json:
                print_json({"signs": str(signer.verifier)})
            else:
                click.echo(str(signer.verifier) if ids_only else f"signs    {signer.verifier}")
        if ids_only:
            return
        for name in [chosen_topic(store, topic)] if topic else store.topics():
            for term in signer_terms(store, name, signing.signers[0].verifier.name):
                if as_json:
                    print_json({"topic": name, "key": term.key, "added": term.added, "retired": term.retired})
                    continue
                end = f", retired by record {term.retired}" if term.retired is not None else ""
                click.echo(shown(f"topic {name}: {term.key} added by record {term.added}{end}"))


@command.command()
@_DIR
@json_option
def rotate(directory: str | Path, as_json: bool) -> None:
    """Begin a rotation: make a new key, which signs beside the old one from now on.

    Publish the new verifier key, which is printed. When all verifiers have it, run redkey signer retire.
    """
    with _opened(directory) as (_, signing):
        added = str(signing.add_signer())
        print_done({"added": added}, added, as_json=as_json)


@command.command()
@_DIR
@click.argument("key", metavar="KEY")
@json_option
def retire(directory: str | Path, key: str, as_json: bool) -> None:
    """End a rotation: KEY (a verifier key, or its id of eight digits) signs no more and its secret is deleted."""
    with _opened(directory) as (_, signing):
        keys = {signer.verifier.key_id.hex(): signer.verifier for signer in signing.signers}
        found = keys.get(key) or next((one for one in keys.values() if str(one) == key), None)
        if found is None:
            known = ", ".join(keys)
            raise click.UsageError(f"no key that signs here is {key!r}; these do: {known}")
        signing.retire_signer(found)
        print_done({"retired": str(found)}, f"retired  {found}", as_json=as_json)


@command.command()
@_DIR
@_TOPIC
@click.option("--old", type=click.IntRange(min=0), help="As a witness's request, continuing this size.")
def checkpoint(directory: str | Path, topic: str | None, old: int | None) -> None:
    """Print the newest checkpoint; it is signed now if there are newer records.

    With --old it is a C2SP tlog-witness request: the proof that it continues the size that the witness cosigned last
    (0 the first time), and the checkpoint. Send it, and keep the answer with redkey signer cosigned.

    \b
      redkey signer checkpoint .redkey --old 0 > request
      redkey witness cosign --dir w request > answer
      redkey signer cosigned .redkey answer --witness w/witness.pub
    """
    with _opened(directory) as (store, signing):
        chosen = chosen_topic(store, topic)
        signing.sign([chosen])
        found = store.checkpoints(chosen, 1)
        if not found:
            raise LedgerError(f"topic {chosen} holds no workspace, so nothing is signed", code="workspace_missing")
        size, data = found[0]
        if old is None:
            click.echo(data.decode(), nl=False)
            return
        if old > size:
            raise click.UsageError(f"--old is {old}, the log has {size} records")
        hashes = tuple(store.tree(chosen).consistency_proof(old, size))
        click.echo(Request(old, hashes, *open_checkpoint(data)).encode().decode(), nl=False)


@command.command()
@_DIR
@click.argument("answer", type=FILE)
@_TOPIC
@click.option("--witness", "witnesses", multiple=True, required=True, metavar="KEY", help="A witness's key, or a file.")
@json_option
def cosigned(directory: str | Path, answer: str, topic: str | None, witnesses: tuple[str, ...], as_json: bool) -> None:
    """Keep a witness's cosignature (the line that it answered) with its checkpoint: receipts carry it from now on."""
    keys = witness_key_option(witnesses)
    with click.open_file(answer, "rb") as stream:
        data: bytes = stream.read(NOTE_LIMIT)
    with _opened(directory) as (store, signing):
        named = chosen_topic(store, topic)
        kept = directly(store)(named, lambda unit: signing.add_cosignatures(unit, named, data, keys))
        told = shown(f"{kept.origin} size {kept.size:,} is witnessed")
        print_done({"origin": kept.origin, "size": kept.size}, told, as_json=as_json)


@contextmanager
def _opened(directory: str | Path) -> Iterator[tuple[OpenStore, Signing]]:
    with open_store(directory, create=False) as store:
        yield store, open_signing(store)
