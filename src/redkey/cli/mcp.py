"""`redkey mcp`: the queue as tools for Claude Code, Codex, Cursor, Gemini CLI, OpenClaw and other MCP clients."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.next_step import Step, print_step
from redkey.cli.report import print_json
from redkey.cli.screen import print_done
from redkey.errors import RedKeyError

if TYPE_CHECKING:
    from redkey.mcp.clients import McpClient, Scope

_CLIENTS = ("claude-code", "codex", "cursor", "gemini", "openclaw")


class ExtraMissing(RedKeyError):
    """An optional part of RedKey is not installed."""

    code = "extra_missing"


@click.group(invoke_without_command=True)
@click.option("--queue", default="default", show_default=True, metavar="QUEUE", help="Where tasks come from.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role that the agent has; may be repeated.")
@click.option("--agent", default="", metavar="NAME", help="What the agent is called [the name of the client].")
@click.option(
    "--lease",
    "lease_seconds",
    type=click.IntRange(5, 86400),
    default=60,
    show_default=True,
    help="How many seconds a task stays held when this process is killed.",
)
@click.pass_context
def command(ctx: click.Context, queue: str, roles: tuple[str, ...], agent: str, lease_seconds: int) -> None:
    """Serve MCP over standard input and output, for one client process.

    MCP clients start this themselves. Set one up with `redkey mcp install claude-code`. The server is the one that
    REDKEY_URL and REDKEY_API_KEY or REDKEY_DATA name, else the one of this project (.redkey), which is started when it
    does not run.
    """
    if ctx.invoked_subcommand is not None:
        return
    _check_extra()
    from redkey.mcp.stdio import Options, serve

    asyncio.run(serve(Options(queue, roles, agent, lease_seconds), Path.cwd()))


def _check_extra() -> None:
    for module in ("mcp", "tomlkit"):
        if importlib.util.find_spec(module) is None:
            raise ExtraMissing("MCP needs the extra mcp: pip install 'redkey[mcp]'")


_client = click.argument("client", type=click.Choice(_CLIENTS))


def _placed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that select the configuration file."""
    function = click.option("--user", "scope", flag_value="user", help="For every project of yours.")(function)
    return click.option("--project", "scope", flag_value="project", help="For this project only.")(function)


def _started(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that the entry passes on to `redkey mcp`."""
    function = click.option("--agent", default="", metavar="NAME", help="What the agent is called.")(function)
    function = click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role of the agent.")(function)
    return click.option("--queue", default="", metavar="QUEUE", help="Where its tasks come from [default].")(function)


def _entry(client: McpClient, queue: str, roles: tuple[str, ...], agent: str) -> dict[str, Any]:
    from redkey.mcp.clients import entry

    options = [*(("--queue", queue) if queue else ()), *(("--agent", agent) if agent else ())]
    for role in roles:
        options += ["--role", role]
    # A key is a secret and must not be in shared files; the client's own environment has it.
    named = {"REDKEY_URL": os.environ.get("REDKEY_URL", ""), "REDKEY_DATA": os.environ.get("REDKEY_DATA", "")}
    if named["REDKEY_DATA"]:
        named["REDKEY_DATA"] = str(Path(named["REDKEY_DATA"]).expanduser().absolute())
    return entry(client, tuple(options), {name: value for name, value in named.items() if value})


@command.command()
@_client
@_placed
@_started
@click.option("--no-start", is_flag=True, help="Start no server now; the first tool call does.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def install(
    client: str,
    scope: Scope | None,
    queue: str,
    roles: tuple[str, ...],
    agent: str,
    no_start: bool,
    as_json: bool,
) -> None:
    """Let an MCP client start `redkey mcp`: write its configuration, and start this project's server.

    Other entries, comments and the order of the file stay as they are. Run it again to change the entry; undo it with
    `redkey mcp uninstall`.

    \b
      redkey mcp install claude-code
      redkey mcp install codex --role reviewer
    """
    _check_extra()
    from redkey.mcp import clients

    chosen = clients.CLIENTS[client]
    url = "" if no_start else _start_server()
    if chosen.format == "command":
        _install_openclaw()
        changed, where = True, "openclaw"
    else:
        file = chosen.file(scope or chosen.default, Path.cwd(), os.environ)
        changed, where = clients.install(chosen, file, _entry(chosen, queue, roles, agent)), str(file)
    if as_json:
        print_json({"client": client, "file": where, "changed": changed, "url": url})
        return
    click.echo(f"{'Wrote the server redkey to' if changed else 'The server redkey is already in'} {where}")
    if url:
        click.echo(f"The RedKey server of this project runs at {url}")
    print_step(Step(hint=chosen.then), err=False)


def _start_server() -> str:
    """Return the URL of the server that the client will use; start this project's own server if needed."""
    from redkey.mcp.place import find_place

    return find_place(Path.cwd(), os.environ).url


def _install_openclaw() -> None:
    from redkey.client import RedKey
    from redkey.mcp.clients import openclaw_command
    from redkey.mcp.place import find_place

    if shutil.which("openclaw") is None:
        raise ExtraMissing("openclaw is not on the PATH: install it, or see redkey mcp config openclaw")
    place = find_place(Path.cwd(), os.environ)
    card = {"name": "openclaw", "description": "OpenClaw by MCP", "version": "1"}
    with RedKey(place.url, place.api_key) as admin:
        registered = admin.agents.register(card=card, framework="mcp", issue_key=True)
    done = subprocess.run(openclaw_command(place.url, registered.api_key), check=False)  # noqa: S603
    if done.returncode != 0:
        raise ExtraMissing(f"openclaw mcp add ended with {done.returncode}", code="client_refused")


@command.command()
@_client
@_started
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def config(client: str, queue: str, roles: tuple[str, ...], agent: str, as_json: bool) -> None:
    """Print what `install` would write, and change nothing."""
    from redkey.mcp import clients

    chosen = clients.CLIENTS[client]
    made = _entry(chosen, queue, roles, agent)
    if as_json:
        print_json({"client": client, "entry": made})
    else:
        click.echo(clients.shown(chosen, made))


@command.command()
@_client
@_placed
@click.option("--json", "as_json", is_flag=True, help="JSON in place of text.")
def uninstall(client: str, scope: Scope | None, as_json: bool) -> None:
    """Take the entry out of a client's configuration again. Servers and data stay."""
    _check_extra()
    from redkey.mcp import clients

    chosen = clients.CLIENTS[client]
    if chosen.format == "command":
        remove = "openclaw mcp remove redkey"
        print_done({"client": client, "changed": False, "run": remove}, f"run: {remove}", as_json=as_json)
        return
    file = chosen.file(scope or chosen.default, Path.cwd(), os.environ)
    changed = clients.uninstall(chosen, file)
    told = f"{'Removed the server redkey from' if changed else 'There is no server redkey in'} {file}"
    print_done({"client": client, "file": str(file), "changed": changed}, told, as_json=as_json)


@command.command(hidden=True)
@click.argument("event", type=click.Choice(["session-start", "prompt", "session-end"]))
def hook(event: str) -> None:
    """Answer a hook of Claude Code; see plugins/redkey/hooks."""
    from redkey.mcp.hooks import answer

    click.echo(answer(event), nl=False)
