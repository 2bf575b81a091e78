"""The `redkey` command. Each subcommand is a module of this package, imported only when it is called.

Exit codes: 0 the answer is yes, 1 it is no (invalid, damaged, refused), 2 the command was used wrongly.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from redkey.errors import RedKeyError

# name -> (module under redkey.cli, one line of help); the module has a click command named `command`.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "backup": ("backup", "Copy a data directory while it is in use."),
    "card": ("card", "Lint Agent Cards."),
    "fsck": ("fsck", "Check a data directory, trusting nothing in it."),
    "hcs": ("hcs", "Verify saved Hedera Consensus Service messages."),
    "ledger": ("ledger", "Dump, load, tail, replay and export ledgers."),
    "plan": ("plan", "Validate, show and simulate plans."),
    "receipt": ("receipt", "Verify receipts offline, and make them from a data directory."),
    "restore": ("restore", "Open a backup as a new epoch of its log."),
    "serve": ("serve", "Serve the API."),
    "signer": ("signer", "Rotate a log's signing keys, and bring its checkpoints to witnesses."),
    "step": ("step", "Validate agent-protocol input and output envelopes."),
    "usage": ("usage", "What workspaces used, and whether it was counted right."),
    "wire": ("wire", "Validate, lift and replay Agent Wire messages."),
    "witness": ("witness", "Cosign a log's checkpoints after checking their consistency."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = importlib.import_module(f"redkey.cli.{COMMANDS[cmd_name][0]}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Every refusal of RedKey's own ends as one line on stderr and exit 1, never as a traceback."""
        try:
            return super().invoke(ctx)
        except RedKeyError as refused:
            from redkey.cli.report import shown

            # Messages may quote what strangers wrote; a terminal must not obey it.
            click.echo(f"redkey: {shown(refused.message)} [{refused.code}]", err=True)
            ctx.exit(1)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="redkey")
def main() -> None:
    """RedKey gives parallel agents a shared verified queue."""
