"""`redkey backup`: copy a data directory while it is in use."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from redkey.cli import INTERRUPTED
from redkey.cli.fsck import progress_bar
from redkey.cli.report import print_json, shown
from redkey.cli.store import STORE, shown_store
from redkey.errors import BackupRefused
from redkey.services.backup import MANIFEST, Manifest
from redkey.services.fsck.check import Fsck
from redkey.stores.opening import store_at


@click.command()
@click.argument("store", metavar="STORE", type=STORE)
@click.argument("target", metavar="DEST", type=click.Path(path_type=Path))
@click.option("--with-keys", is_flag=True, help="Copy the secrets too: the keys that sign and issue.")
@click.option("--quick", is_flag=True, help="Check only the copied bytes, not the ledger in them.")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
@click.pass_context
def command(ctx: click.Context, store: str | Path, target: Path, with_keys: bool, quick: bool, as_json: bool) -> None:
    """Copy STORE, a data directory or the URL of a database, to DEST, which must not exist. STORE may be in use.

    The copy is consistent: the database, large content, the last checkpoints, and a manifest with the hash of
    every file. It is read again when it is written, and checked as by redkey fsck.

    Secrets are left out unless you ask for them, so that a backup can be kept where the log's keys must not be. A log
    that is restored without its keys gets new ones, and says so on the record.

    \b
      redkey backup .redkey /backups/2026-05-07
      redkey backup .redkey /vault/2026-05-07 --with-keys
      redkey backup postgresql://redkey@db.example.com/redkey /backups/2026-05-07

    Exit code 0: the backup was written and checked. 1: it was not written; the reason is on standard error.
    """
    try:
        taken_at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        manifest = store_at(store).take_backup(
            target,
            taken_at,
            with_keys=with_keys,
            check=lambda copy: _verify(shown_store(store), copy, quick=quick, quiet=as_json),
        )
    except KeyboardInterrupt:
        click.echo(f"redkey: stopped; {target} was not made", err=True)
        ctx.exit(INTERRUPTED)
    if as_json:
        print_json({"backup": str(target), **_as_json(manifest)})
    else:
        _print(target, manifest, checked=not quick)


def _verify(directory: str, copy: Path, *, quick: bool, quiet: bool) -> None:
    """Check that the files on the disk are the copied ones, and that the copy is sound."""
    store_at(copy).read_backup()
    if quick:
        return
    with store_at(copy).inspect_closed() as evidence, progress_bar(shown=not quiet) as progress:
        report = Fsck(evidence, progress=progress).run()
    if not report.clean:
        text = (
            f"{directory} is damaged: {report.faults[0].message}; run redkey fsck {directory}, or copy it with --quick"
        )
        raise BackupRefused(text, code="source_damaged")


def _as_json(manifest: Manifest) -> dict[str, object]:
    return {
        "logId": manifest.log_id,
        "epoch": manifest.epoch,
        "takenAt": manifest.taken_at,
        "keys": manifest.keys,
        "files": len(manifest.files),
        "bytes": sum(file.bytes for file in manifest.files.values()),
        "topics": msgspec.to_builtins(manifest.topics),
    }


def _print(target: Path, manifest: Manifest, *, checked: bool) -> None:
    size = sum(file.bytes for file in manifest.files.values())
    records = sum(topic.records for topic in manifest.topics)
    what = f"{records:,} records of {len(manifest.topics):,} topics, {len(manifest.files):,} files, {size:,} bytes"
    click.echo(shown(f"{target}: {what}"))
    click.echo("its bytes were read again and checked" + (", and so was what they mean" if checked else ""))
    kept = "it holds the log's secrets: keep it as safe as them" if manifest.keys else "it holds no secrets"
    click.echo(f"{kept}; {MANIFEST} names every file by its hash")
