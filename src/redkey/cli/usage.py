"""`redkey usage`: show what was counted and what may be spent, and check the counting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.declared import add_declared
from redkey.cli.look import Look
from redkey.cli.screen import print_item, print_table
from redkey.cli.session import daily
from redkey.cli.store import STORE

# The most transactions of one workspace that may be in flight.
_ON_THEIR_WAY = 100_000

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
    """Show usage and credits, and check the counting.

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
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".redkey"),
    show_default=True,
    envvar="REDKEY_DATA",
    help="The data directory.",
)
@click.option("--store", envvar="REDKEY_STORE", type=STORE, help="The URL of a database, in place of --data.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a workspace.")
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A TOML file with the table [hedera]: compare the fees with the network's records too.",
)
@click.pass_context
def reconcile(ctx: click.Context, data: Path, store: str | Path | None, as_json: bool, file: Path | None) -> None:
    """Count the ledger again and compare with the meter; with --config, fees with the network's records.

    Works beside a running server. Exit code 1: the two differ; each figure that does is named.
    """
    from redkey.cli.report import print_json
    from redkey.services.reconcile import reconcile as count_again
    from redkey.stores.opening import open_store

    if store is None and not data.is_dir():
        raise click.BadParameter(f"there is no data directory {data}", ctx, param_hint="--data")
    differences = 0
    with open_store(store or data, create=False) as opened:
        for one in count_again(opened):
            differences += len(one.differences)
            if as_json:
                print_json(_as_json(one))
                continue
            told = f"{one.records:,} records, {one.credits:,} credits, {len(one.differences)} differences"
            click.echo(f"{one.workspace_id}: {told}")
            for wrong in one.differences:
                click.echo(f"  {wrong.name}: the meter has {wrong.meter:,}, the ledger {wrong.ledger:,}")
        if file is not None:
            differences += _reconcile_fees(opened, file, as_json=as_json)
    ctx.exit(1 if differences else 0)


def _reconcile_fees(store: Any, file: Path, *, as_json: bool) -> int:
    """Compare the booked fees with the network's mirror, to the tinybar; return 1 if they differ."""
    import os

    from redkey.cli.report import print_json
    from redkey.config import load
    from redkey.hedera.opening import open_network
    from redkey.hedera.reconciling import charged
    from redkey.ledger.network import network_topic
    from redkey.services.anchors import pending_anchor
    from redkey.services.network_fees import read_book
    from redkey.services.ordered.fees import unbooked

    settings = load(file, os.environ, {}).hedera
    network = open_network(settings)
    shown: dict[str, tuple[int, int]] = {}
    try:
        if settings.topic:
            shown |= charged(network, settings.topic)
        for topic in store.topics():
            if _is_of(topic, network.addresses.name):
                shown |= charged(network, network_topic(topic), changes=True)
    finally:
        network.close()
    # Transactions in flight are booked later.
    for topic in store.topics():
        pending = pending_anchor(store, topic)
        for name in (*unbooked(store, topic, _ON_THEIR_WAY), pending.transaction_id if pending is not None else ""):
            shown.pop(name, None)
    messages, tinybars = sum(one for one, _ in shown.values()), sum(one for _, one in shown.values())
    books = [read_book(store, topic) for topic in store.topics()]
    booked = sum(book.messages for book in books), sum(book.tinybars for book in books)
    if as_json:
        print_json({"network": [messages, tinybars], "booked": list(booked)})
    else:
        click.echo(f"fees: {messages:,} messages and {tinybars:,} tinybars on the network, booked {booked}")
    return int(booked != (messages, tinybars))


def _is_of(topic: str, network: str) -> bool:
    """Whether a local topic has the records that a topic of this network orders."""
    from redkey.ledger.network import is_projected, network_topic, projected_topic

    return is_projected(topic) and projected_topic(network, network_topic(topic)) == topic


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
                "fees": lambda one: f"${one.ledger_fees.amount:,.6f} for {one.ledger_fees.messages:,} network messages",
            }
        ),
        "grant": Look(told="{amount:,} {unit} granted to {workspace_id}"),
    },
)
