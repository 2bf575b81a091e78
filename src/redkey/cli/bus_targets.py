"""The bus, session and agent that a `redkey bus` command means: named on the command line, or the only one."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.report import shown

if TYPE_CHECKING:
    from redkey.bus import BusClient

DIRECTORY = click.Path(path_type=Path, file_okay=False)
# How many names an error message lists.
_LISTED = 10


def finds_bus(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command that talks to a bus: `home` is what --home names, or the bus of the server that --data names."""

    @wraps(function)
    def run(*arguments: Any, home: Path | None, data: Path | None, **options: Any) -> Any:
        if home is not None and data is not None:
            raise click.UsageError("--home and --data both name a bus; leave one out")
        return function(*arguments, home=data / "bus" if data is not None else home, **options)

    whose = "The data directory whose server has the bus [.redkey]."
    told = "The bus's home [WEAVE_HOME, the bus of the server here, or ~/.weave]."
    wrapped = click.option("--data", type=DIRECTORY, help=whose)(run)
    return click.option("--home", type=DIRECTORY, help=told)(wrapped)


def choose_session(bus: BusClient, name: str | None, *, creates: bool = False, closed: bool = False) -> str:
    """Find a session by id or name, or the only open one.

    With `creates`, the first session is created; with `closed`, a closed one may be named by its id.
    """
    sessions = bus.sessions()
    if closed and name is not None and name not in (known for entry in sessions for known in (entry.id, entry.name)):
        return name
    if name is not None:
        matches = [entry.id for entry in sessions if name == entry.id]
        matches = matches or [entry.id for entry in sessions if name == entry.name]
    else:
        matches = [entry.id for entry in sessions]
    if len(matches) == 1:
        return matches[0]
    if creates and name is None and not matches:
        return bus.open_session()
    if name is not None and matches:
        raise click.UsageError(f"{len(matches)} open sessions have the name {name!r}; use an id: {_listed(matches)}")
    if name is not None:
        raise click.UsageError(f"no open session has the id or name {name!r}; list them: redkey bus sessions")
    if not matches:
        raise click.UsageError("no session is open; create one: redkey bus sessions --create NAME")
    raise click.UsageError(f"{len(matches)} sessions are open; choose one with --session: {_listed(matches)}")


def choose_agent(bus: BusClient, name: str, session: str | None = None) -> str:
    """Find an agent by id or name."""
    from redkey.bus.runtime.events import Peer
    from redkey.bus.runtime.targets import matches

    peers = [Peer(agent.id, agent.name, agent.lead) for agent in bus.agents(session)]
    found = matches(name, peers)
    if len(found) == 1:
        return found[0]
    if found:
        raise click.UsageError(f"{name!r} matches {len(found)} agents; use an id: {_listed(found)}")
    # Leave out this command's own temporary agent.
    others = [peer.id for peer in peers if peer.id != f"redkey-{os.getpid()}"]
    known = f"agents here: {_listed(others)}" if others else "the session has no agents yet"
    raise click.UsageError(f"no agent of the session has the id or name {name!r}; {known}")


def _listed(names: list[str]) -> str:
    """List some names for an error message."""
    return ", ".join(shown(name) for name in names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
