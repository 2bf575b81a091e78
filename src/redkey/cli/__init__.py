"""The `redkey` command. Each subcommand is a module of this package, imported only when it is called.

Exit codes: 0 the answer is yes, 1 it is no (invalid, damaged, refused), 2 the command was used wrongly, 130 it was
stopped by Ctrl-C.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from redkey import __version__
from redkey.errors import RedKeyError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTERRUPTED = 130
# The environment variable by which a shell asks for completions.
COMPLETES = "_REDKEY_COMPLETE"
# Section of the help -> name -> (module under redkey.cli, one line of help); the module has a click command named
# `command`.
SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("demo", "See agents race, one killed, a receipt verified, in one minute."),
        "init": ("init", "Prepare a directory for a server of its own."),
        "serve": ("serve", "Serve the API."),
        "run": ("run", "Run agents on a queue: claim, prompt, run, verify, report."),
        "mcp": ("mcp", "Let Claude Code, Codex and other MCP clients work the queue."),
        "status": ("status", "Show the status of the server and of the workspace."),
        "studio": ("studio", "Open the web page of the server."),
        "top": ("top", "Queues, agents and leases, live."),
        "completion": ("completion", "Let the shell complete commands and options."),
    },
    "Work": {
        "task": ("task", "Create tasks, and follow them to their end."),
        "artifact": ("artifact", "List and get the artifacts of tasks."),
        "queue": ("queue", "Create queues, show their tasks, pause them."),
        "claim": ("claim", "Claim tasks and report on them, as an agent does."),
        "plan": ("plan", "Validate, show and simulate plans."),
        "workflow": ("workflow", "Start plans, and follow, pause and end their runs."),
        "gate": ("gate", "Approve finished work, or send it back."),
        "inbox": ("inbox", "Read and send messages."),
        "bus": ("bus", "Serve the bus, and talk with agents live."),
    },
    "Who may do what": {
        "agent": ("agent", "Register agents, and show what they do."),
        "role": ("role", "Create roles, and grant them to agents."),
        "webhook": ("webhook", "Send events to URLs, and show the deliveries."),
        "login": ("login", "Log in to a server with the browser."),
        "logout": ("logout", "End your login at a server."),
        "project": ("project", "Create projects, see their phases, and complete them."),
        "person": ("person", "Invite people who log in, see their sessions, and remove them."),
        "key": ("key", "Create, list, revoke and recover API keys."),
        "workspace": ("workspace", "List workspaces, create new ones, and set policies."),
    },
    "The record": {
        "events": ("events", "Show and follow events."),
        "receipt": ("receipt", "Get receipts, and verify them offline."),
        "ledger": ("ledger", "Dump, load, tail, replay and export ledgers."),
        "usage": ("usage", "Show usage, and check the counting."),
    },
    "Operate": {
        "config": ("config", "Show settings, and where they come from."),
        "fsck": ("fsck", "Check a data directory, trusting nothing in it."),
        "backup": ("backup", "Copy a data directory while it is in use."),
        "restore": ("restore", "Open a backup as a new epoch of its log."),
        "migrations": ("migrations", "Print the SQL of a ledger in PostgreSQL, with its views."),
        "signer": ("signer", "Rotate signing keys, and exchange checkpoints with witnesses."),
        "hedera": ("hedera", "Use a Hedera network, or a simulated one on this machine."),
        "witness": ("witness", "Cosign a log's checkpoints after checking their consistency."),
    },
    "Documents": {
        "wire": ("wire", "Validate, lift and replay Agent Wire messages."),
        "card": ("card", "Lint and show Agent Cards."),
        "contract": ("contract", "List and show output contracts."),
        "prompt": ("prompt", "Show the prompt that an agent would get."),
        "step": ("step", "Validate and migrate agent-protocol envelopes."),
        "openapi": ("openapi", "Print the OpenAPI document of the API."),
        "hcs": ("hcs", "Verify saved Hedera Consensus Service messages."),
    },
}
COMMANDS: Mapping[str, tuple[str, str]] = {
    name: entry for section in SECTIONS.values() for name, entry in section.items()
}


# Words that people try first, and the commands they mean.
MEANT: Mapping[str, str] = {
    "approve": "gate approve",
    "logs": "events tail",
    "reject": "gate reject",
    "server": "serve",
    "start": "serve",
    "up": "serve",
    "verify": "receipt verify",
    "watch": "task watch",
    "worker": "run",
}


def _further_groups() -> dict[str, str]:
    """Return the groups named by declared operations that are in no section, with their purposes."""
    from redkey.shapes.groups import command_groups

    return {name: purpose for name, purpose in command_groups().items() if name not in COMMANDS}


class LazyGroup(click.Group):
    """A command group that imports a command only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *_further_groups()]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Answer an unknown command with the one that was probably meant."""
        word = args[0]
        known = word in COMMANDS or word in _further_groups()
        if not known and not word.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            meant = MEANT.get(word) or next(iter(get_close_matches(word, COMMANDS)), None)
            if meant is not None:
                ctx.fail(f"No such command {word!r}. Did you mean: redkey {meant}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found: click.Command
        if cmd_name in COMMANDS:
            found = importlib.import_module(f"redkey.cli.{COMMANDS[cmd_name][0]}").command
        else:
            purpose = _further_groups().get(cmd_name)
            if purpose is None:
                return None
            from redkey.cli.declared import declared_group

            found = declared_group(cmd_name, purpose)
        if COMPLETES in os.environ:
            from redkey.cli.suggestions import suggest

            return suggest(found)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # All sections share one column width, so that they read as one list.
        widest = max(map(len, COMMANDS))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), line) for name, (_, line) in section.items()])
        further = _further_groups()
        if further:
            with formatter.section("More"):
                formatter.write_dl([(name.ljust(widest), line) for name, line in further.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the matching names without importing the commands, because the shell waits at every key."""
        from click.shell_completion import CompletionItem

        fitting = {name: line for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)}
        if not fitting:
            fitting = {name: line for name, line in _further_groups().items() if name.startswith(incomplete)}
        return [CompletionItem(name, help=line) for name, line in fitting.items()]

    def invoke(self, ctx: click.Context) -> Any:
        """Print RedKey's own errors as a sentence on stderr and exit with 1, never with a traceback."""
        try:
            return super().invoke(ctx)
        except RedKeyError as refused:
            from redkey.cli.refusal import print_refusal

            print_refusal(refused)
            ctx.exit(1)
        except KeyboardInterrupt:
            # A user who stops a live view needs no message about it.
            ctx.exit(INTERRUPTED)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version=__version__, prog_name="redkey")
@click.pass_context
def main(ctx: click.Context) -> None:
    """RedKey gives parallel agents a shared verified queue.

    New here? `redkey demo` shows the point in one minute. Then start a server with `redkey serve`, and in another
    terminal put a first task on it: `redkey task create --role researcher --title "Research Piers Gorman"`.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
