"""`redkey contract`: the output contracts that briefs and cards may name."""

from __future__ import annotations

from pathlib import Path

import click

from redkey.cli.screen import print_list
from redkey.cli.session import json_option


@click.group()
def command() -> None:
    """See output contracts."""


@command.command("list")
@click.option(
    "--contracts",
    "directories",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A directory of contracts beside those of RedKey.",
)
@json_option
def list_contracts(directories: tuple[Path, ...], as_json: bool) -> None:
    """The contracts by slug: what types of output they are for, and what they ask."""
    from redkey.runner.contracts import Contracts

    print_list(
        Contracts(directories),
        ("CONTRACT", "TYPES", "WHAT IT ASKS"),
        lambda one: (one.slug, ", ".join(one.types), one.description),
        as_json=as_json,
        empty="no contracts",
    )
