"""`redkey bus`: serve the bus, see who is there, send, follow and talk."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from redkey.cli.report import print_json, shown
from redkey.cli.screen import until_reader_leaves

if TYPE_CHECKING:
    from redkey.bus import BusClient
    from redkey.bus.runtime.events import Message

_HOME = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="The bus's home [WEAVE_HOME, the bus of a redkey serve in .redkey, or ~/.weave].",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON, one document a line.")
_RESTART_SECONDS = 300.0
# Everybody else in the session, as a destination.
_ALL = "all"
# How many names an error message lists.
_LISTED = 10
_SESSION = click.option("--session", metavar="ID", help="The session, by id or name [the only one that is open].")


@click.group()
def command() -> None:
    """Live talk between agents: sessions, agents, messages.

    A bus keeps its sockets and its log in a home directory. It speaks Weave v0 over Unix sockets, and the same over
    HTTP on this machine. `redkey serve` has one too: its home is the folder bus of the data directory.
    """


@command.command()
@_HOME
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the HTTP face listens: this machine only.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The HTTP face's port; 0 is a free one [as before in this home, else 8701, else a free one].",
)
@click.option(
    "--leads",
    type=click.Choice(["single", "multiple"]),
    default="single",
    show_default=True,
    help="Whether a message without destination goes to one lead or to all.",
)
@click.option("--ready-file", type=click.Path(path_type=Path), help="Written once the bus answers, as JSON.")
@click.option("--log-format", type=click.Choice(["auto", "json", "text"]), default="auto", help="How logs are written.")
def serve(home: Path | None, host: str, port: int | None, leads: str, ready_file: Path | None, log_format: str) -> None:
    """Serve a bus until a signal comes.

    The HTTP face takes the token that is kept in HOME/token, which its owner alone can read.

    \b
      redkey bus serve
      WEAVE_HOME=/srv/talk redkey bus serve --port 8750
    """
    from redkey.bus.home import home_of
    from redkey.bus.runtime.relay import Policy
    from redkey.config import load
    from redkey.serving import serve_bus

    where = home.expanduser().absolute() if home is not None else home_of(os.environ)
    arguments = {"host": host, "port": port or 0, "ready_file": ready_file, "log_format": log_format}
    policy = Policy(leads="multiple" if leads == "multiple" else "single")
    raise SystemExit(serve_bus(where, load(None, {}, arguments), policy, say=click.echo, finds_port=port is None))


@command.command()
@_HOME
@_JSON
@click.option("--create", metavar="NAME", help="Begin a session of this name, and show it.")
@click.option("--close", "ended", metavar="ID", help="Close a session.")
@until_reader_leaves()
def sessions(home: Path | None, as_json: bool, create: str | None, ended: str | None) -> None:
    """List the open sessions; begin or close one.

    \b
      redkey bus sessions --create release
      redkey bus sessions
    """
    with _client(home) as bus:
        if ended is not None:
            bus.close_session(_chosen(bus, ended))
            return
        made = bus.create_session(create) if create is not None else None
        for one in bus.sessions():
            if made is not None and one.id != made:
                continue
            if as_json:
                print_json({"id": one.id, "name": one.name})
            else:
                click.echo(f"{one.id}  {shown(one.name or '')}".rstrip())


@command.command()
@_HOME
@_SESSION
@_JSON
@click.option("--remove", "removed", metavar="AGENT", help="Remove an agent and what waits for it.")
@until_reader_leaves()
def agents(home: Path | None, session: str | None, as_json: bool, removed: str | None) -> None:
    """List the agents of a session, in its order, or remove one."""
    with _client(home) as bus:
        chosen = _chosen(bus, session)
        if removed is not None:
            bus.remove(_agent(bus, removed, chosen), chosen)
            return
        for one in bus.agents(chosen):
            if as_json:
                print_json(msgspec.to_builtins(one))
                continue
            words = ["lead" if one.lead else "", "online" if one.online else "away", one.status or ""]
            click.echo("  ".join([shown(one.id), shown(one.name or ""), *(shown(word) for word in words if word)]))


@command.command()
@click.argument("dst", metavar="AGENT")
@click.argument("text", required=False)
@_HOME
@_SESSION
@click.option("--as", "agent", metavar="ID", help="Speak as this agent, which stays [one that leaves again].")
@click.option("--wait", type=float, metavar="SECONDS", help="Wait for an answer, print it, and fail when none comes.")
@_JSON
def send(
    dst: str,
    text: str | None,
    home: Path | None,
    session: str | None,
    agent: str | None,
    wait: float | None,
    as_json: bool,
) -> None:
    """Send TEXT (or standard input) to AGENT, by id or name, or to `all`.

    It is durable when this returns: an agent that is away gets it when it comes back.

    \b
      redkey bus send worker "please look at the build"
      redkey bus send worker --wait 60 "are you done?"
    """
    words = text if text is not None else sys.stdin.read()
    if not words.strip():
        raise click.UsageError("there is nothing to send")
    with _client(home) as bus:
        chosen = _chosen(bus, session, creates=True)
        name = agent or f"redkey-{os.getpid()}"
        bus.join(chosen, name, None if agent else "redkey")
        try:
            target = _agent(bus, dst) if dst != _ALL else None
            if target is None and any(_ALL in (one.id, one.name) for one in bus.agents()):
                raise click.UsageError(f"an agent of the session is called {_ALL!r} too; rename or remove it first")
            message = bus.send(target, words, to_all=target is None)
            if wait is None:
                _print(message.id, {"message_id": message.id}, as_json=as_json)
                return
            _answered(bus, message, wait, as_json=as_json)
        finally:
            if agent is None:
                bus.leave()


def _answered(bus: BusClient, asked: Message, seconds: float, *, as_json: bool) -> None:
    """Wait for an answer: in the conversation, or whatever the agent that was asked writes."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        found = bus.receive(left)
        if found is not None and (found.conversation_id == asked.conversation_id or found.src == asked.dst):
            _print(found.text, {"src": found.src, "text": found.text}, as_json=as_json)
            return
    click.echo(f"redkey: no answer came within {seconds:g} seconds", err=True)
    raise SystemExit(1)


@command.command()
@_HOME
@_SESSION
@click.option("-n", "--lines", "count", type=click.IntRange(min=0), default=10, show_default=True, help="How many.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens from now on.")
@_JSON
@until_reader_leaves()
def tail(home: Path | None, session: str | None, count: int, follow: bool, as_json: bool) -> None:
    """Show the last records of a session.

    \b
      redkey bus tail -f
    """
    # One that follows outlives a restart of the bus.
    with _client(home, reconnect_seconds=_RESTART_SECONDS if follow else 0) as bus:
        chosen = _chosen(bus, session, closed=True)
        last = 0
        for record in bus.history(chosen, max(count, 1)):
            last = record["seq"]
            if count:
                _show(record, as_json=as_json)
        if not follow:
            return
        try:
            for record in bus.follow(chosen, after=last):
                _show(record, as_json=as_json)
        except KeyboardInterrupt:
            return


def _show(record: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(record)
        return
    from redkey.bus.runtime.chatting import destination
    from redkey.bus.runtime.events import message_of

    envelope = record["envelope"]
    what = envelope["type"]
    if what == "message.send":
        message = message_of(envelope)
        what = f"{message.src} > {destination(envelope)} ({message.kind}): {message.text}"
    else:
        payload = envelope.get("payload") or {}
        what = f"{what} {payload.get('id', envelope['src'])} {payload.get('name') or ''}".rstrip()
    click.echo(f"{record['seq']:>6}  {record['ts']}  {shown(what)}")
    sys.stdout.flush()


@command.command()
@_HOME
@_SESSION
@click.option("--as", "agent", metavar="ID", help="Who you are in the session [your user name and a number].")
@click.option("--name", help="How you are shown.")
@click.option("--model", metavar="COMMAND", help="A command that leads relays: JSON prompt in, an intent out.")
def chat(home: Path | None, session: str | None, agent: str | None, name: str | None, model: str | None) -> None:
    """Talk in a session: an interactive terminal.

    A line with #mentions (a name in any case, or an id) goes to the agents it mentions; a line without goes to the last
    writer, whom the prompt names. A mention of nobody is not sent. /agents, /to NAME, /name NAME and /quit do what they
    say. With --model, a line with mentions is a task that the model relays, and what it answers is shown.

    \b
      redkey bus chat
      > #worker is the build green?
    """
    from redkey.cli.chat import run

    with _client(home) as bus:
        chosen = _chosen(bus, session, creates=True)
    key = agent or f"{os.environ.get('USER') or 'you'}-{os.getpid()}"
    raise SystemExit(run(_home(home), chosen, key, name, shlex.split(model) if model else None, leaves=agent is None))


def _print(words: str, value: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        click.echo(shown(words) if words.isprintable() else "\n".join(shown(line) for line in words.splitlines()))


def _client(home: Path | None, *, reconnect_seconds: float = 0) -> BusClient:
    from redkey.bus import BusClient

    return BusClient(_home(home), reconnect_seconds=reconnect_seconds)


def _home(given: Path | None) -> Path:
    from redkey.bus.home import find_home

    return given.expanduser().absolute() if given is not None else find_home(os.environ)


def _chosen(bus: BusClient, given: str | None, *, creates: bool = False, closed: bool = False) -> str:
    """The session that is meant: by id, by name, or the only one that is open.

    With `creates`, the first one is created; with `closed`, a closed one may be named by its id.
    """
    found = bus.sessions()
    if closed and given is not None and given not in (name for one in found for name in (one.id, one.name)):
        return given
    if given is not None:
        matches = [one.id for one in found if given == one.id] or [one.id for one in found if given == one.name]
    else:
        matches = [one.id for one in found]
    if len(matches) == 1:
        return matches[0]
    if creates and given is None and not matches:
        return bus.open_session()
    if given is not None and matches:
        raise click.UsageError(f"{len(matches)} open sessions are called {given!r}; use an id: {_listed(matches)}")
    if given is not None:
        raise click.UsageError(f"no open session is called {given!r}; redkey bus sessions lists them")
    if not matches:
        raise click.UsageError("no session is open; create one: redkey bus sessions --create NAME")
    raise click.UsageError(f"{len(matches)} sessions are open; choose one with --session: {_listed(matches)}")


def _agent(bus: BusClient, given: str, session: str | None = None) -> str:
    """The agent that is meant, by id or name."""
    from redkey.bus.runtime.events import Peer
    from redkey.bus.runtime.targets import matches

    peers = [Peer(one.id, one.name, one.lead) for one in bus.agents(session)]
    found = matches(given, peers)
    if len(found) == 1:
        return found[0]
    if found:
        raise click.UsageError(f"{given!r} means {len(found)} agents; use an id: {_listed(found)}")
    # Who asks has joined the session only to send this.
    others = [peer.id for peer in peers if peer.id != f"redkey-{os.getpid()}"]
    known = f"agents here: {_listed(others)}" if others else "the session has no agents yet"
    raise click.UsageError(f"no agent of the session is called {given!r}; {known}")


def _listed(names: list[str]) -> str:
    """Some names for an error message."""
    return ", ".join(shown(name) for name in names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
