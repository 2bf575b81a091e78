"""`redkey key`: API keys of a workspace."""

from __future__ import annotations

import time
from pathlib import Path

import click

from redkey.cli.declared import add_declared
from redkey.cli.look import Look
from redkey.cli.next_step import Step
from redkey.cli.screen import print_item, tell
from redkey.cli.session import json_option


@click.group()
def command() -> None:
    """Make, list, revoke and recover API keys.

    Scopes: read (look), produce (queues, tasks, workflows), agent (claim and report as one agent), runner (as any
    agent), admin (everything in the workspace), operator (the whole server).
    """


@command.command()
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--workspace", metavar="ID", default="", help="The workspace [the first one].")
@json_option
def recover(directory: Path, workspace: str, as_json: bool) -> None:
    """Make a new key when no key is left that could, from the data directory DIR itself.

    No key is needed: whoever can write DIR owns the server. In the first workspace the new key has the scopes operator
    and admin, in any other the scope admin. The ledger records it as key.recovered. A server that runs on DIR takes the
    key at once. The key is shown here and never again; credentials.json in DIR gets it where it held a key of the same
    workspace, and where it is missing, as after a restore, for the first workspace.

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
    from redkey.stores.keys import issuing_secret
    from redkey.stores.opening import open_signing, open_store

    with open_store(directory, create=False) as store:
        keys = KeyRing(store, issuing_secret(store.keys_directory), time.monotonic)
        made = recover_key(store, SystemIds(), keys, open_signing(store), workspace)
    before = read_credentials(directory)
    if before is None and "operator" in made.scopes:
        # As after a restore: a server that starts here puts its own address in place of this one.
        before = current(Credentials(f"http://127.0.0.1:{DEFAULT_PORT}", None, made.workspace_id, ""), directory)
    kept = before is not None and before.workspace_id == made.workspace_id
    if before is not None and kept:
        write_credentials(directory, replace(before, api_key=made.api_key))
    if as_json:
        print_item(made)
        return
    told = Step(hint=f"{directory / CREDENTIALS} has it now" if kept else "keep the key: it is not shown again")
    tell(f"{made.key_id} of {made.workspace_id} ({', '.join(made.scopes)})\n\n  {made.api_key}\n", next_step=told)


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
            empty="no keys",
        ),
        "revoke": Look(told="{key_id} is revoked"),
    },
)
