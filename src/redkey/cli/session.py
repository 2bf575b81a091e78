"""The server that a daily command talks to, through the SDK, and the options that all daily commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redkey import __version__
from redkey.cli.next_step import remember
from redkey.cli.short_ids import refuse_other_kind, resolve_ids, whole_id
from redkey.cli.values import extensions_option
from redkey.errors import NotFound, RedKeyError

if TYPE_CHECKING:
    from redkey.client import RedKey

DEFAULT_QUEUE = "default"
_RETRIES = 2
AGENT_VARIABLE = "REDKEY_AGENT_ID"

json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
ids_option = click.option("-q", "--quiet", "ids_only", is_flag=True, help="Only ids, one per line.")
queue_option = click.option("--queue", default=DEFAULT_QUEUE, show_default=True, metavar="QUEUE", help="The queue.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="The maximum number of items."
)


def _need_agent(ctx: click.Context, option: click.Parameter, agent: str | None) -> str | None:
    if agent is None and not ctx.resilient_parsing:
        raise click.UsageError(
            f"no agent given: use --agent, or set {AGENT_VARIABLE}. List the agents with: redkey agent list"
        )
    return agent


agent_option = click.option(
    *("--agent", "agent"),
    envvar=AGENT_VARIABLE,
    callback=_need_agent,
    metavar="AGENT",
    help=f"The agent, by id or name [{AGENT_VARIABLE}].",
)


def daily(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command that talks to a server: it gets the client first, and takes --url, --data and --json."""
    return connected(json_option(function))


def recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command of daily work that records something and prints ids: it also takes --extensions and -q."""
    return extensions_option(ids_option(daily(function)))


def connected(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command that gets a client as its first argument, and takes --url and --data.

    The key is never an option, because other users can see command lines: it comes from REDKEY_API_KEY, or from the
    file that `redkey serve` wrote.
    """

    @wraps(function)
    def run(*arguments: Any, url: str | None, data: Path | None, **options: Any) -> Any:
        remember(options, url=url, data=data)
        # A person waits for the answer, so fail soon if the server does not answer.
        with connect(url, data).with_options(max_retries=_RETRIES) as rk:
            try:
                whole = resolve_ids(rk, options)
                remember(whole, url=url, data=data)
                return function(rk, *arguments, **whole)
            except NotFound as refused:
                refused.detail = _with_name(refused)
                if refused.code.startswith("http_") or refused.code == "path_not_found":
                    # The path does not exist: the server is not a RedKey server, or has another version.
                    refused.origin = rk.settings.origin
                    refused.detail += _other_version(rk)
                raise

    wrapped = click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        help="The data directory whose server is meant [.redkey].",
    )(run)
    return click.option("--url", metavar="URL", help="The server [REDKEY_URL, else as in the data directory].")(wrapped)


def _other_version(rk: RedKey) -> str:
    """Return the versions of the server and of this command if they differ; nothing if it is no RedKey server."""
    try:
        version = rk.with_options(max_retries=0).server.ready().version
    except RedKeyError:
        return ""
    return f" The server is RedKey {version}, this command is RedKey {__version__}." if version != __version__ else ""


def _with_name(refused: NotFound) -> str:
    """Name the missing object, and the option, argument or variable that named it."""
    context = click.get_current_context()
    what = refused.code.removesuffix("_not_found")
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if option.name in (what, f"{what}_id", f"ref_{what}_id") and isinstance(value, str):
            source = context.get_parameter_source(option.name)
            named = option.opts[0] if isinstance(option, click.Option) else option.make_metavar(context)
            if source is not None and source.name == "ENVIRONMENT":
                named = str(option.envvar)
            return f"{refused.detail.rstrip('.')}: {value} (from {named})"
    return refused.detail


def connect(url: str | None = None, data: Path | None = None) -> RedKey:
    """Create a client for the chosen server."""
    from redkey.client import RedKey

    return RedKey(url, data=data)


def slugs_of(rk: RedKey) -> Mapping[str, str]:
    """Return the names of the agents by their ids: only the first 500, because nobody reads more."""
    return {agent.agent_id: agent.slug for agent in rk.agents.list(limit=500).page().items}


def agent_id_of(rk: RedKey, name: str) -> str:
    """Return the id of an agent, given its id, the start of it, or its slug."""
    if name.startswith("agt_"):
        return whole_id(rk, name, "agt_")
    for agent in rk.agents.list(slug=name):
        return agent.agent_id
    refuse_other_kind(name, "agt_")
    raise NotFound(404, "agent_not_found", "There is no such agent in this workspace.")


def own_workspace(rk: RedKey) -> str:
    """Return the default workspace; an operator may have to choose."""
    found = list(rk.workspaces.list())
    if len(found) != 1:
        raise click.UsageError("this key sees several workspaces: name one with --workspace (redkey workspace list)")
    return found[0].workspace_id
