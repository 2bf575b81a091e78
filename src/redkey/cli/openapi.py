"""`redkey openapi`: the OpenAPI document, written from the code, without a server."""

from __future__ import annotations

from typing import BinaryIO

import click


@click.command()
@click.option(
    "--output",
    type=click.File("wb", atomic=True),
    default="-",
    metavar="FILE",
    help="Write the document to a file instead of standard output.",
)
def command(output: BinaryIO) -> None:
    """Print the OpenAPI document of the HTTP API, the bus included.

    It needs no server and no data directory, and is the same on every machine: generate clients from it. A running
    server shows the same document at /openapi.json, with its own address.
    """
    import msgspec

    from redkey.api.openapi import document
    from redkey.api.surface import routes
    from redkey.app import operations_of

    output.write(msgspec.json.format(document(operations_of(routes())), indent=2) + b"\n")
