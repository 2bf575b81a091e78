"""`redkey contract`: the output contracts that briefs and cards may name."""

from __future__ import annotations

from pathlib import Path

import click

from redkey.cli.documents import contracts_option
from redkey.cli.screen import print_details, print_list
from redkey.cli.session import ids_option, json_option
from redkey.errors import ConfigRefused


@click.group()
def command() -> None:
    """List and show output contracts."""


@command.command("list")
@contracts_option
@ids_option
@json_option
def list_contracts(contracts_dirs: tuple[Path, ...], ids_only: bool, as_json: bool) -> None:
    """List the contracts by slug, with their output types and requirements."""
    from redkey.runner.contracts import Contracts

    print_list(
        Contracts(contracts_dirs),
        ("CONTRACT", "TYPES", "WHAT IT ASKS"),
        lambda one: (one.slug, ", ".join(one.types), one.description),
        as_json=as_json,
        ids_only=ids_only,
        empty="no contracts",
    )


@command.command()
@click.argument("contract", metavar="CONTRACT")
@contracts_option
@json_option
def show(contract: str, contracts_dirs: tuple[Path, ...], as_json: bool) -> None:
    """Show a contract: its output types, and the JSON Schema of the check."""
    from redkey.runner.contracts import Contracts

    known = Contracts(contracts_dirs)
    found = known.get(contract)
    if found is None:
        slugs = ", ".join(one.slug for one in known)
        raise ConfigRefused(f"there is no output contract {contract}; known: {slugs}", code="contract_unknown")
    facts = [("contract", found.slug), ("types", found.types), ("asks", found.description), ("schema", found.schema)]
    print_details(found, facts, as_json=as_json)
