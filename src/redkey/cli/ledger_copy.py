"""`redkey ledger copy`: move a ledger between a data directory and a database."""

from __future__ import annotations

from pathlib import Path

import click

from redkey.cli import INTERRUPTED
from redkey.cli.fsck import progress_bar
from redkey.cli.report import print_json, shown
from redkey.cli.store import NEW_STORE, STORE, shown_store
from redkey.stores.ledger_copying import copy_ledger
from redkey.stores.opening import store_at


@click.command("copy")
@click.argument("source", metavar="FROM", type=STORE)
@click.argument("target", metavar="TO", type=NEW_STORE)
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
@click.pass_context
def copy_command(ctx: click.Context, source: str | Path, target: str | Path, as_json: bool) -> None:
    """Copy the ledger of FROM to TO, whole. Each is a data directory or the URL of a database.

    The copy is the same log: the same records, checkpoints, API keys and signing keys, so receipts from before stay
    valid. It is compared with FROM in the end: the hash chain, the tree, rows, content, checkpoints, settings. Servers
    refuse TO until then. Stopped or killed, the same command continues where it was.

    Stop the servers of FROM first, and never serve both: two histories would be signed under one name.

    \b
      redkey ledger copy .redkey postgresql://redkey@db.example.com/redkey
      redkey ledger copy postgresql://redkey@db.example.com/redkey moved
    """
    try:
        with progress_bar(shown=not as_json) as progress:
            copied = copy_ledger(store_at(source), store_at(target), copying=progress, comparing=progress)
    except KeyboardInterrupt:
        click.echo("redkey: stopped; run the same command again to continue", err=True)
        ctx.exit(INTERRUPTED)
    there, here = shown_store(source), shown_store(target)
    names = ("topics", "records", "records before", "rows", "contents", "checkpoints")
    figures = {name.replace(" ", "_"): copied[name] for name in names}
    if as_json:
        print_json({"source": there, "target": here, **figures, "verified": True})
        return
    before = f" ({copied['records before']:,} from an earlier run)" if copied["records before"] else ""
    click.echo(
        shown(
            f"{here}: {copied['records'] + copied['records before']:,} records of {copied['topics']:,} topics{before}"
        )
    )
    what = f"{copied['rows']:,} rows, {copied['contents']:,} bodies, {copied['checkpoints']:,} checkpoints"
    click.echo(shown(f"{what}; everything was compared with {there}"))
    click.echo("serve only one of the two from now on")
