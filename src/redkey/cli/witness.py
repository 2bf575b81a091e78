"""`redkey witness`: cosign another party's checkpoints, so that it cannot show two histories unseen."""

from __future__ import annotations

import time
from pathlib import Path

import click

from redkey.cli.documents import FILE
from redkey.cli.keys import log_key_option
from redkey.cli.report import print_json, shown
from redkey.cli.screen import print_done
from redkey.cli.session import json_option
from redkey.errors import ProofRefused, WitnessRefused
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.note import is_key_name
from redkey.ledger.witness import REQUEST_LIMIT, Request, parse_request
from redkey.stores.witness import WitnessDirectory, create_witness

_DIR = click.option(
    "--dir", "directory", required=True, type=click.Path(path_type=Path), help="The witness's directory."
)


@click.group()
def command() -> None:
    """Cosign a log's checkpoints after checking their consistency.

    A witness must be run by another party than the log's operator. It keeps the last
    checkpoint of every log and cosigns the next one only when it is proven to continue it.
    """


@command.command()
@click.option("--name", required=True, help="The witness's name: a host or path of yours, such as example.org/witness.")
@_DIR
@json_option
def init(name: str, directory: Path, as_json: bool) -> None:
    """Create a witness: its own key (mode 0600), and its verifier key, which is printed for others to use."""
    if not is_key_name(name):
        raise click.UsageError("a name has no spaces and no plus, and at most 255 bytes")
    verifier = str(create_witness(directory, name))
    print_done({"witness": verifier}, verifier, as_json=as_json)


@command.command()
@_DIR
@click.argument("keys", nargs=-1, required=True)
@json_option
def trust(directory: Path, keys: tuple[str, ...], as_json: bool) -> None:
    """Cosign for the logs with these verifier keys from now on; a log's key speaks for all its workspaces."""
    trusted = log_key_option(keys)
    _open(directory).trust(trusted)
    if as_json:
        print_json({"trusted": [str(one.key) for one in trusted]})


@command.command()
@_DIR
@click.option("--log-key", "keys", multiple=True, metavar="KEY", help="A log's verifier key, for this call only.")
@click.option("--proof", type=FILE, help="For a bare checkpoint: `old SIZE` and the consistency proof, a hash a line.")
@click.argument("file", type=FILE)
@click.pass_context
def cosign(ctx: click.Context, directory: Path, keys: tuple[str, ...], proof: str | None, file: str) -> None:
    """Cosign the checkpoint in FILE and print the signature line.

    FILE is a C2SP tlog-witness request (`old SIZE`, a consistency proof, an empty line, the signed checkpoint),
    or a signed checkpoint alone, which is enough the first time and for one that was cosigned before.

    Exit code 1: the checkpoint is not cosigned; the reason is on standard error. What looks like a second
    history is kept under evidence/ in the witness's directory.
    """
    witness = _open(directory)
    try:
        request = _request(witness, _read(file), proof)
    except ProofRefused as refused:
        raise WitnessRefused(refused.message, code=refused.code, status=400) from refused
    click.echo(witness.add_checkpoint(request, log_key_option(keys)).line(), nl=False)


@command.command()
@_DIR
@json_option
def status(directory: Path, as_json: bool) -> None:
    """Print the witness's verifier key, the logs it knows, what it cosigned last, and what it holds as evidence."""
    witness = _open(directory)
    if as_json:
        seen = [{"origin": one.origin, "size": one.size, "root": one.root.hex()} for one in witness.seen()]
        logs = [{"key": str(one.key), "retired": one.retired} for one in witness.trusted()]
        evidence = [str(path) for path in witness.evidence()]
        print_json({"witness": str(witness.verifier), "logs": logs, "seen": seen, "evidence": evidence})
        return
    click.echo(f"witness {witness.verifier}")
    for key in witness.trusted():
        click.echo(f"log     {key.key}" + (f" retired {key.retired}" if key.retired is not None else ""))
    for checkpoint in witness.seen():
        click.echo(shown(f"seen    {checkpoint.origin} size {checkpoint.size:,} root {checkpoint.root.hex()}"))
    for path in witness.evidence():
        click.echo(f"{click.style('split', fg='red')}   {path}")


@command.command()
@_DIR
@click.option("--listen", default="127.0.0.1:8808", show_default=True, metavar="HOST:PORT", help="Where to listen.")
def serve(directory: Path, listen: str) -> None:
    """Answer C2SP tlog-witness requests (POST /add-checkpoint) over HTTP.

    It listens on loopback only: put a proxy that speaks TLS before it. Port 0 takes a free port; the address is
    printed when it listens.
    """
    from redkey.cli.witness_server import run

    run(_open(directory), listen)


def _open(directory: Path) -> WitnessDirectory:
    if not (directory / "witness.key").exists():
        raise click.UsageError(f"{directory} holds no witness; make one with: redkey witness init")
    return WitnessDirectory(directory, lambda: int(time.time()))


def _request(witness: WitnessDirectory, data: bytes, proof: str | None) -> Request:
    if data.startswith(b"old "):
        if proof:
            raise click.UsageError("FILE is a whole request: it has its proof in it")
        return parse_request(data)
    if proof:
        return parse_request(_read(proof).rstrip(b"\n") + b"\n\n" + data)
    checkpoint, note = open_checkpoint(data)
    last = witness.last(checkpoint.origin)
    again = last is not None and last[0].size == checkpoint.size
    return Request(checkpoint.size if again else 0, (), checkpoint, note)


def _read(path: str) -> bytes:
    with click.open_file(path, "rb") as stream:
        data: bytes = stream.read(REQUEST_LIMIT + 1)
    return data
