"""`redkey contract`: the output contracts that briefs and cards may name."""

from __future__ import annotations

from pathlib import Path

import click

from redkey.cli.documents import contracts_option
from redkey.cli.screen import print_list
from redkey.cli.session import json_option


@click.group()
def command() -> None:
    """See output contracts."""


@command.command("list")
@contracts_option
@json_option
def list_contracts(contracts_dirs: tuple[Path, ...], as_json: bool) -> None:
    """List the contracts by slug, with the output types they are for and what they ask."""
    from redkey.runner.contracts import Contracts

    print_list(
        Contracts(contracts_dirs),
        ("CONTRACT", "TYPES", "WHAT IT ASKS"),
        lambda one: (one.slug, ", ".join(one.types), one.description),
        as_json=as_json,
        empty="no contracts",
    )
