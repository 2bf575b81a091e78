"""`redkey ledger import`: rebuild a workspace that is ordered by a network, from a mirror node alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import click
import msgspec

from redkey.cli.report import print_json
from redkey.errors import DumpRefused
from redkey.ledger.ports import Content
from redkey.ledger.record import Record, entity
from redkey.services.dump import Structure, read_dump
from redkey.stores.disk import new_folder
from redkey.stores.opening import open_store


@click.command("import")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--topic", required=True, metavar="0.0.N", help="The topic of the network that gives the workspace its order."
)
@click.option(
    "--network",
    metavar="NAME",
    default="mainnet",
    show_default=True,
    help="mainnet, testnet, previewnet, or the name of another one.",
)
@click.option("--mirror", metavar="URL", help="The REST API of a mirror node [that of the network].")
@click.option(
    "--structures", type=click.File("rb"), metavar="FILE", help="A dump that holds the structure which records name."
)
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
def import_command(
    directory: Path, topic: str, network: str, mirror: str | None, structures: IO[bytes] | None, as_json: bool
) -> None:
    """Rebuild a workspace that is ordered by a network, from a mirror alone, as the data directory DIR.

    Every message is checked by its running hash. The records are computed from the messages,
    so records and hashes are the same at every organisation. DIR must not exist; it appears when the rebuild is
    complete. A server on it shows the workspace and writes nothing to it.

    \b
      redkey ledger import rebuilt --topic 0.0.4711 --network testnet

    The network only has the hashes of plans and of the requirements of large tasks: give a dump of a server that has
    them with --structures. Titles, inputs and artifacts are not on the network.
    """
    from redkey.services.ordered.projection import StructureMissing
    from redkey.services.ordered.rebuild import rebuild

    _check_topic(topic)
    known = {} if structures is None else structures_of(structures)
    with new_folder(directory) as aside, open_store(aside) as store:
        try:
            rebuilt = rebuild(store, network, topic, messages_of(network, topic, mirror), known)
        except StructureMissing as missing:
            text = f"{missing.message} Bring a dump that has it: --structures FILE (redkey ledger dump on that server)"
            raise DumpRefused(text, code=missing.code) from missing
    if as_json:
        print_json({"directory": str(directory), **msgspec.structs.asdict(rebuilt)})
        return
    without = ", ".join(f"{number:,} {reason}" for reason, number in rebuilt.left_out.items())
    click.echo(
        f"{directory}: workspace {rebuilt.workspace_id}, {rebuilt.records:,} records of {rebuilt.messages:,} messages"
    )
    if without:
        click.echo(f"messages that left no record: {without}")


def _check_topic(topic: str) -> None:
    """Refuse anything that is not a topic of a public network."""
    try:
        shard, _, _ = entity(topic)
    except ValueError as cause:
        raise click.UsageError(f"--topic: {cause}") from cause
    if shard:
        raise click.UsageError(f"--topic: {topic} is not a topic of a public network; those are 0.0.N")


def structures_of(stream: IO[bytes]) -> dict[str, Content]:
    """Return the structure in a dump, by hash."""
    items = (item for item in read_dump(stream) if isinstance(item, Structure))
    return {item.content.sha256: item.content for item in items}


def messages_of(network: str, topic: str, url: str | None) -> Iterator[Sequence[Record]]:
    """Yield the messages of a topic from the first one on, as far as the mirror has them."""
    # Few commands talk to a network, and an HTTP client is slow to import.
    from redkey.hedera.mirror import Mirror
    from redkey.hedera.reader import TopicReader

    mirror = Mirror(url or _known(network))
    try:
        reader = TopicReader(mirror, topic)
        while page := reader.read():
            yield page
    finally:
        mirror.close()


def _known(network: str) -> str:
    """Return the REST API of a public network's mirror."""
    if network not in ("mainnet", "testnet", "previewnet"):
        raise click.UsageError(f"--mirror is needed: {network!r} is not mainnet, testnet or previewnet")
    # The SDK knows the addresses, and is slow to import.
    from redkey.hedera.addresses import known_network

    return known_network(network).rest
