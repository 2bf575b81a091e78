"""`redkey usage`: what was counted, and whether it was counted right."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def command() -> None:
    """What workspaces used."""


@command.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(".redkey"),
    show_default=True,
    envvar="REDKEY_DATA",
    help="The data directory.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a workspace.")
@click.pass_context
def reconcile(ctx: click.Context, data: Path, as_json: bool) -> None:
    """Count the ledger again and compare with the meter.

    Works beside a running server. Exit code 1: the two differ; each figure that does is named.
    """
    from redkey.cli.report import print_json
    from redkey.services.reconcile import reconcile as count_again
    from redkey.stores.sqlite import SqliteStore

    differences = 0
    with SqliteStore(data, create=False) as store:
        for one in count_again(store):
            differences += len(one.differences)
            if as_json:
                print_json(_as_json(one))
                continue
            told = f"{one.records:,} records, {one.credits:,} credits, {len(one.differences)} differences"
            click.echo(f"{one.workspace_id}: {told}")
            for wrong in one.differences:
                click.echo(f"  {wrong.name}: the meter has {wrong.meter:,}, the ledger {wrong.ledger:,}")
    ctx.exit(1 if differences else 0)


def _as_json(reconciled: object) -> object:
    import msgspec

    return msgspec.to_builtins(reconciled)
