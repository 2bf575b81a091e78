"""`redkey key`: API keys of a workspace."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redkey.cli.declared import add_declared
from redkey.cli.look import Look
from redkey.cli.next_step import Step
from redkey.cli.screen import print_created
from redkey.cli.session import ids_option, json_option
from redkey.cli.store import STORE

if TYPE_CHECKING:
    from redkey.services.recovery import RecoveredKey


@click.group()
def command() -> None:
    """Create, list, revoke and recover API keys.

    Scopes: read (look), produce (queues, tasks, workflows), agent (claim and report as one agent), runner (as any
    agent), admin (everything in the workspace), operator (the whole server).
    """


@command.command()
@click.argument("directory", metavar="STORE", type=STORE)
@click.option("--workspace", metavar="ID", default="", help="The workspace [the first one].")
@ids_option
@json_option
def recover(directory: str | Path, workspace: str, ids_only: bool, as_json: bool) -> None:
    """Create a key if all keys are lost, from STORE itself: a data directory, or the URL of a database.

    No key is needed: who can write STORE owns the server. In the first workspace the new key has the scopes operator
    and admin, in any other the scope admin. The ledger records it as key.recovered. Servers of STORE take the key
    at once. The key is shown here and never again; credentials.json of a data directory gets it if it had a key of the
    same workspace, and if it is missing, as after a restore, for the first workspace.

    \b
      redkey key recover .redkey
    """
    from msgspec.structs import replace

    from redkey.app import write_credentials
    from redkey.config import CREDENTIALS, DEFAULT_PORT, Credentials, read_credentials
    from redkey.discovery import current
    from redkey.services.keys import KeyRing
    from redkey.services.recovery import recover_key
    from redkey.stores.ids import SystemIds
    from redkey.stores.opening import open_signing, open_store

    with open_store(directory, create=False) as store:
        keys = KeyRing(store, store.secrets.issuing_secret(), time.monotonic)
        made = recover_key(store, SystemIds(), keys, open_signing(store), workspace)
    if isinstance(directory, str):
        _print_recovered(made, "keep the key: it is not shown again", ids_only=ids_only, as_json=as_json)
        return
    before = read_credentials(directory)
    if before is None and "operator" in made.scopes:
        # The address is a placeholder, as after a restore: a server that starts here replaces it.
        before = current(Credentials(f"http://127.0.0.1:{DEFAULT_PORT}", None, made.workspace_id, ""), directory)
    kept = before is not None and before.workspace_id == made.workspace_id
    if before is not None and kept:
        write_credentials(directory, replace(before, api_key=made.api_key))
    hint = f"{directory / CREDENTIALS} has it now" if kept else "keep the key: it is not shown again"
    _print_recovered(made, hint, ids_only=ids_only, as_json=as_json)


def _print_recovered(made: RecoveredKey, hint: str, *, ids_only: bool, as_json: bool) -> None:
    named = f"{made.key_id} of {made.workspace_id} ({', '.join(made.scopes)})"
    told = f"{named}\n\n  {made.api_key}\n"
    print_created(made, made.key_id, told, ids_only=ids_only, as_json=as_json, next_step=Step(hint=hint))


add_declared(
    command,
    "key",
    {
        "create": Look(
            told="{key_id}\n\n  {api_key}\n",
            hint="keep the key: it is not shown again",
            examples=(
                "redkey key create --scope produce --name pipeline",
                "redkey key create --scope agent --agent atlas",
            ),
        ),
        "list": Look(
            parts={
                "KEY": "key_id",
                "PREFIX": "prefix",
                "STATE": lambda key: "revoked" if key.revoked_at else "active",
                "CREATED": "created_at",
                "SCOPES": "scopes",
                "NAME": lambda key: key.name or key.agent_id,
            },
            names_agents=True,
            empty="no keys",
        ),
        "revoke": Look(told="{key_id} is revoked"),
    },
)
