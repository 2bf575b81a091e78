"""`redkey hedera`: a stand-in network for development, topics and balances."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import click


@click.group()
def command() -> None:
    """Use a Hedera network, or a stand-in for one on this machine.

    \b
      redkey hedera standin --config hedera.toml
      redkey hedera topic create --config hedera.toml
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
@click.option("--seed", type=int, default=0, help="Which faults happen; the same seed gives the same ones.")
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
        click.echo(f"a stand-in for a Hedera network is at {network.mirror} (gRPC) and {network.rest} (mirror)")
        click.echo(f"operator {written.operator}, topic {written.topic}; settings: {file}")
        ended.wait()


@command.group()
def topic() -> None:
    """Create topics on the network of the configuration."""


_CONFIG = click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The TOML file with the table [hedera] [REDKEY_CONFIG, else redkey.toml here].",
)


@topic.command()
@_CONFIG
@click.option("--memo", default="RedKey checkpoints", show_default=True, help="What the topic says of itself.")
def create(file: Path | None, memo: str) -> None:
    """Create a topic that only the operator may write to, and print its id. It costs about $0.01.

    \b
      redkey hedera topic create --config hedera.toml
    """
    from redkey.config import config_file, load
    from redkey.hedera.opening import open_network
    from redkey.hedera.topics import create_topic

    network = open_network(load(config_file(file, os.environ), os.environ, {}).hedera)
    try:
        click.echo(create_topic(network, memo))
    finally:
        network.close()


@command.command()
@_CONFIG
def balance(file: Path | None) -> None:
    """Print what the operator's account has, in HBAR and in dollars."""
    from redkey.config import config_file, load
    from redkey.hedera.opening import open_network
    from redkey.hedera.refusals import refusal
    from redkey.ledger.fees import HBAR

    network = open_network(load(config_file(file, os.environ), os.environ, {}).hedera)
    try:
        found, rate = network.mirror.account(network.operator.account), network.mirror.exchange_rate()
        if found is None:
            raise refusal("PAYER_ACCOUNT_NOT_FOUND", network.operator.account, network.addresses.name)
        click.echo(f"{found.account}: {found.tinybars / HBAR:,.8f} HBAR (${rate.usd(found.tinybars):,.4f})")
    finally:
        network.close()
