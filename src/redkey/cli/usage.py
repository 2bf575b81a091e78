"""`redkey usage`: what was counted, what may be spent, and whether it was counted right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.declared import add_declared
from redkey.cli.look import Look
from redkey.cli.screen import print_item, print_table
from redkey.cli.session import daily

if TYPE_CHECKING:
    from redkey.client import RedKey


@click.group()
def command() -> None:
    """What was used, what may be spent, and whether it was counted right."""


@command.command()
@click.option("--by", type=click.Choice(["day", "type", "agent"]), default="day", show_default=True)
@click.option("--from", "since", metavar="DAY", help="From this day on (UTC), as in 2026-05-07.")
@click.option("--to", "until", metavar="DAY", help="Before this day.")
@daily
def show(rk: RedKey, by: Any, since: str | None, until: str | None, as_json: bool) -> None:
    """What the workspace used: events, claims won and missed, bytes, credits."""
    found = rk.usage.get(since=since, until=until, by=by)
    if as_json:
        print_item(found)
        return
    rows = [(one.day or one.type or one.agent_id or "", *_figures(one)) for one in found.items]
    titles = (by.upper(), "EVENTS", "CLAIMS", "MISSES", "REJECTED", "BYTES", "CREDITS")
    print_table(titles, [*rows, ("total", *_figures(found.total))])


def _figures(one: Any) -> tuple[str, ...]:
    return tuple(f"{n:,}" for n in (one.events, one.claims, one.misses, one.rejected, one.bytes, one.credits))


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
    from redkey.stores.opening import open_store

    differences = 0
    with open_store(data, create=False) as store:
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


add_declared(
    command,
    "usage",
    {
        "credits": Look(
            parts={
                "granted": lambda one: f"{one.granted:,}",
                "used": lambda one: f"{one.used:,}",
                "balance": lambda one: "unlimited" if one.balance is None else f"{one.balance:,} {one.unit}",
            }
        ),
        "grant": Look(told="{amount:,} {unit} granted to {workspace_id}"),
    },
)
