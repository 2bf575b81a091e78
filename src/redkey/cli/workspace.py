"""`redkey workspace`: the workspaces of a server; operators begin new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from redkey.cli.screen import ago, print_item, print_list, tell
from redkey.cli.session import daily, ids_option

if TYPE_CHECKING:
    from redkey.client import RedKey


@click.group()
def command() -> None:
    """See workspaces, and begin new ones. Each has its own order, ledger and keys."""


@command.command("list")
@ids_option
@daily
def list_workspaces(rk: RedKey, ids_only: bool, as_json: bool) -> None:
    """The workspace of your key; all of them for operators."""
    print_list(
        rk.workspaces.list(),
        ("WORKSPACE", "CREATED", "NAME"),
        lambda one: (one.workspace_id, ago(one.created_at), one.name or ""),
        as_json=as_json,
        ids_only=ids_only,
        empty="no workspaces",
    )


@command.command()
@click.option("--name", help="A name for people.")
@daily
def create(rk: RedKey, name: str | None, as_json: bool) -> None:
    """Begin a workspace. Its first key (scope admin) is shown here and never again."""
    made = rk.workspaces.create(name=name)
    if as_json:
        print_item(made)
        return
    tell(f"{made.workspace_id}\n\n  {made.api_key}\n", next_step="keep the key: it is not shown again")
