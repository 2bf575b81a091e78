"""`redkey hedera`: a simulated network for development, topics, ordered workspaces and balances."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import click

from redkey.cli.hedera_ledger import hand_over_topic, list_topics, party, record_owner, retire_topic, workspace
from redkey.cli.screen import print_created, print_done
from redkey.cli.session import ids_option, json_option


@click.group()
def command() -> None:
    """Use a Hedera network, or a simulated one on this machine.

    \b
      redkey hedera standin --config hedera.toml
      redkey hedera topic create --config hedera.toml
      redkey hedera workspace begin --name Podcast
    """


@command.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port of the node (gRPC) [a free one].")
@click.option("--rest-port", type=click.IntRange(0, 65535), default=0, help="The port of the mirror [a free one].")
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("hedera.toml"),
    show_default=True,
    help="Write the settings of the network here, and the operator's key beside it.",
)
@click.option("--fault", "rates", multiple=True, metavar="NAME=RATE", help="A fault and its probability; see the docs.")
@click.option("--seed", type=int, default=0, help="The seed of the faults; the same seed gives the same faults.")
def standin(port: int, rest_port: int, file: Path, rates: tuple[str, ...], seed: int) -> None:
    """Run a Hedera network on this machine: consensus node, mirror stream and mirror REST, until a signal comes.

    It has an operator with 10,000 HBAR and a topic, and writes them as settings to a TOML file. Everything is in memory
    and ends with the process.

    \b
      redkey hedera standin --config hedera.toml
      redkey serve --config hedera.toml
    """
    from redkey.cli.standin_settings import write_settings
    from redkey.hedera.standin.faults import FAULTS, Faults
    from redkey.hedera.standin.server import StandIn

    faults = Faults(seed=seed)
    for text in rates:
        name, _, rate = text.partition("=")
        try:
            if not 0 <= float(rate) <= 1 or name not in FAULTS:
                raise ValueError(text)
        except ValueError as cause:
            known = ", ".join(FAULTS)
            raise click.UsageError(f"--fault {text} is not NAME=RATE with a rate of 0 to 1; faults: {known}") from cause
        faults.rate(name, float(rate))
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with StandIn(faults=faults, port=port, rest_port=rest_port) as network:
        written = write_settings(network, file)
        click.echo(f"a simulated Hedera network is at {network.mirror} (gRPC) and {network.rest} (mirror)")
        click.echo(f"operator {written.operator}, topic {written.topic}; settings: {file}")
        ended.wait()


@command.group()
def topic() -> None:
    """Create topics, list those of a workspace, hand them over and retire them."""


for one in (list_topics, retire_topic, record_owner, hand_over_topic):
    topic.add_command(one)
command.add_command(workspace)
command.add_command(party)


_CONFIG = click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The TOML file with the table [hedera] [REDKEY_CONFIG, else redkey.toml here].",
)


@topic.command()
@_CONFIG
@click.option("--memo", default="RedKey checkpoints", show_default=True, help="The memo of the topic.")
@ids_option
@json_option
def create(file: Path | None, memo: str, ids_only: bool, as_json: bool) -> None:
    """Create a topic that only the operator may write to, and print its id. It costs about $0.01.

    \b
      redkey hedera topic create --config hedera.toml
    """
    from redkey.config import config_file, load
    from redkey.hedera.opening import open_network
    from redkey.hedera.topics import create_topic

    network = open_network(load(config_file(file, os.environ), os.environ, {}).hedera)
    try:
        topic_id = create_topic(network, memo)
        print_created({"topic": topic_id}, topic_id, topic_id, ids_only=ids_only, as_json=as_json)
    finally:
        network.close()


@command.command()
@_CONFIG
@json_option
def balance(file: Path | None, as_json: bool) -> None:
    """Print the balance of the operator's account, in HBAR and in dollars."""
    from redkey.config import config_file, load
    from redkey.hedera.opening import open_network
    from redkey.hedera.refusals import refusal
    from redkey.ledger.fees import HBAR

    network = open_network(load(config_file(file, os.environ), os.environ, {}).hedera)
    try:
        found, rate = network.mirror.account(network.operator.account), network.mirror.exchange_rate()
        if found is None:
            raise refusal("PAYER_ACCOUNT_NOT_FOUND", network.operator.account, network.addresses.name)
        usd = rate.usd(found.tinybars)
        told = f"{found.account}: {found.tinybars / HBAR:,.8f} HBAR (${usd:,.4f})"
        fields = {"account": found.account, "tinybars": found.tinybars, "usd": round(float(usd), 4)}
        print_done(fields, told, as_json=as_json)
    finally:
        network.close()
