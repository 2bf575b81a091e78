"""`redkey restore`: open a backup as a new epoch of its log."""

from __future__ import annotations

import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from redkey.cli import INTERRUPTED
from redkey.cli.fsck import DIRECTORY, progress_bar
from redkey.cli.next_step import Step, print_step
from redkey.cli.report import print_json, shown
from redkey.cli.store import NEW_STORE, shown_store
from redkey.config import CREDENTIALS
from redkey.errors import BackupRefused
from redkey.services.backup import Manifest, Restored, begin_epoch
from redkey.services.fsck.check import Fsck
from redkey.stores.ledger_copying import copy_ledger
from redkey.stores.opening import Place, open_signing, open_store, store_at


@click.command()
@click.argument("backup", metavar="BACKUP", type=DIRECTORY)
@click.argument("target", metavar="TO", type=NEW_STORE)
@click.option("--epoch", type=click.IntRange(2, 999_999), help="The epoch to begin [the backup's and one].")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
@click.pass_context
def command(ctx: click.Context, backup: Path, target: str | Path, epoch: int | None, as_json: bool) -> None:
    """Restore BACKUP to TO, a new data directory or the URL of an empty database. Nothing is overwritten.

    Records from after the backup are lost, so the restored log has another history than the old one. It continues in a
    new epoch: each topic gets a record that names the old checkpoint, and checkpoints have a
    new origin. A witness sees a new tree, not a fork, and closes the old one. Receipts of records that are in the
    backup stay valid; receipts of later ones are of records that are lost.

    When the same backup was restored before, that restore has begun the next epoch already: give a later one with
    --epoch. Without keys in the backup the log gets new ones: publish them as you did the first.

    \b
      redkey restore /backups/2026-05-07 .redkey

    Exit code 0: DIR is there, checked, and ready to be served. 1: it is not there, and the reason is on standard error.
    """
    try:
        place = store_at(backup)
        manifest = place.read_backup()
        if isinstance(target, str):
            restored, keys = _restore_to_database(place, manifest, target, epoch, quiet=as_json)
        else:
            with place.unpack_backup(manifest, target) as aside:
                restored, keys = _go_on(aside, epoch, keys=manifest.keys)
                _verify(aside, quiet=as_json)
    except KeyboardInterrupt:
        click.echo(f"redkey: stopped; {shown_store(target)} was not restored", err=True)
        ctx.exit(INTERRUPTED)
    if as_json:
        print_json({"directory": shown_store(target), "topics": msgspec.to_builtins(restored), "keys": keys})
    else:
        _print(target, restored, keys, fresh=not manifest.keys)


def _restore_to_database(
    place: Place, manifest: Manifest, target: str, epoch: int | None, *, quiet: bool
) -> tuple[list[Restored], list[str]]:
    """Restore to a temporary directory and copy it; an interrupted copy leaves a database that no server opens."""
    with TemporaryDirectory(prefix="redkey-restore-") as folder:
        data = Path(folder) / "data"
        with place.unpack_backup(manifest, data) as aside:
            restored, keys = _go_on(aside, epoch, keys=manifest.keys)
            _verify(aside, quiet=quiet)
        copy_ledger(store_at(data), store_at(target))
    return restored, keys


def _go_on(directory: Path, epoch: int | None, *, keys: bool) -> tuple[list[Restored], list[str]]:
    with open_store(directory, create=False) as store:
        restored = begin_epoch(store, epoch, keys=keys)
        if not restored:
            return [], []
        signing = open_signing(store)
        signing.sign()
        return restored, [str(one.verifier) for one in signing.signers]


def _verify(directory: Path, *, quiet: bool) -> None:
    with store_at(directory).inspect_closed() as evidence, progress_bar(shown=not quiet) as progress:
        report = Fsck(evidence, progress=progress).run()
    if not report.clean:
        raise BackupRefused(f"the backup is damaged: {report.faults[0].message}", code="backup_damaged")


def _print(target: str | Path, restored: list[Restored], keys: list[str], *, fresh: bool) -> None:
    click.echo(shown(f"{shown_store(target)}: restored and checked"))
    for one in restored:
        click.echo(shown(f"  topic {one.topic}: {one.records:,} records, and it goes on as {one.origin}"))
    if restored:
        click.echo("a new epoch has begun: witnesses see a new log under these origins, and close the old ones")
    else:
        click.echo("nothing in it was ever signed, so it goes on as it was")
    for key in keys:
        click.echo(f"{'a new signing key' if fresh else 'signed by'}: {key}")
    if isinstance(target, str):
        print_step(Step(f"redkey key recover {shlex.quote(shown_store(target))}"), err=False)
        return
    named = shlex.quote(str(target))
    if (target / CREDENTIALS).exists():
        print_step(Step(f"redkey serve --data {named}"), err=False)
        return
    # Without its keys, a backup only has their hashes.
    click.echo(f"API keys stay valid, but {CREDENTIALS} was not in the backup")
    print_step(Step(f"redkey key recover {named} && redkey serve --data {named}"), err=False)
