"""`redkey ledger new-epoch`: go on from what a database has after a failover that lost records."""

from __future__ import annotations

import click

from redkey.cli.report import print_json, shown
from redkey.cli.session import json_option


@click.command("new-epoch")
@click.argument("store", metavar="STORE")
@click.confirmation_option("--yes", prompt="Records that only lost servers knew stay lost. Begin a new epoch?")
@json_option
def new_epoch(store: str, as_json: bool) -> None:
    """Open the ledger in STORE for writing after a failover that some server could not confirm.

    Stop all servers first. The ledger goes on from the records that the database has, in a new epoch with a record on
    each topic, as after redkey restore: witnesses see a new log. Receipts of records that the database has stay valid.

    \b
      redkey ledger new-epoch postgresql://redkey@db.example.com/redkey
    """
    from redkey.services.backup import begin_epoch
    from redkey.stores.opening import open_signing, open_store

    with open_store(store, create=False) as opened:
        opened.accept_timeline()
        restored = begin_epoch(opened, None, keys=True)
        if restored:
            open_signing(opened).sign()
    if as_json:
        print_json([{"topic": one.topic, "records": one.records, "origin": one.origin} for one in restored])
        return
    for one in restored:
        click.echo(shown(f"topic {one.topic}: {one.records:,} records, and it goes on as {one.origin}"))
    click.echo("the ledger is open for writing; start the servers again")
