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


class _Usage(click.Group):
    """`redkey usage --by agent` is `redkey usage show --by agent`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Usage)
def command() -> None:
    """What was used, what may be spent, and whether it was counted right.

    \b
      redkey usage --by agent
    """


@command.command()
@click.option("--by", type=click.Choice(["day", "type", "agent", "model", "task"]), default="day", show_default=True)
@click.option("--from", "since", metavar="DAY", help="From this day on (UTC), as in 2026-05-07.")
@click.option("--to", "until", metavar="DAY", help="Before this day.")
@daily
def show(rk: RedKey, by: Any, since: str | None, until: str | None, as_json: bool) -> None:
    """What the workspace used: events, claims won and missed, bytes, credits, tokens and dollars of models."""
    found = rk.usage.get(since=since, until=until, by=by)
    if as_json:
        print_item(found)
        return
    every = ("events", "claims", "misses", "rejected", "bytes", "credits")
    counted = () if by in ("model", "task") else every
    titles = (by.upper(), *(name.upper() for name in counted), "TOKENS IN", "TOKENS OUT", "COST")
    named = [(one.day or one.type or one.agent_id or one.model or one.task_id or "", one) for one in found.items]
    print_table(titles, [(name, *_figures(one, counted)) for name, one in [*named, ("total", found.total)]])


def _figures(one: Any, counted: tuple[str, ...]) -> tuple[str, ...]:
    numbers = (*(getattr(one, name) for name in counted), one.input_tokens, one.output_tokens)
    return (*(f"{number:,}" for number in numbers), f"${one.cost_usd:,.4f}")


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
