"""`redkey bus`: serve the bus, list sessions and agents, send, follow and chat."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from redkey.cli.bus_targets import DIRECTORY, choose_agent, choose_session, finds_bus
from redkey.cli.report import print_json, shown
from redkey.cli.screen import until_reader_leaves
from redkey.cli.session import ids_option

if TYPE_CHECKING:
    from redkey.bus import BusClient
    from redkey.bus.runtime.events import Message

_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON, one document a line.")
_RESTART_SECONDS = 300.0
# The destination of a message to all other agents of the session.
_ALL = "all"
_SESSION = click.option("--session", metavar="ID", help="The session, by id or name [the only one that is open].")


@click.group()
def command() -> None:
    """Live messages between agents.

    A bus keeps its sockets and its log in a home directory. It speaks Weave v0 and v1 over Unix sockets, and the same
    over HTTP on this machine. `redkey serve` has a bus too: its home is the folder bus of the data directory.
    """


@command.command()
@click.option("--home", type=DIRECTORY, help="The bus's home [WEAVE_HOME, or ~/.weave].")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address of the HTTP face; it must be of this machine."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port of the HTTP face; 0 for a free one [the last port of this home, else 8701, else a free one].",
)
@click.option(
    "--leads",
    type=click.Choice(["single", "multiple"]),
    default="single",
    show_default=True,
    help="Whether a message without a destination goes to one lead or to all.",
)
@click.option("--ready-file", type=click.Path(path_type=Path), help="A JSON file that is written once the bus answers.")
@click.option("--log-format", type=click.Choice(["auto", "json", "text"]), default="auto", help="The format of logs.")
def serve(home: Path | None, host: str, port: int | None, leads: str, ready_file: Path | None, log_format: str) -> None:
    """Serve a bus until a signal comes.

    Requests over HTTP need the token in HOME/token, which only its owner can read.

    \b
      redkey bus serve
      WEAVE_HOME=/srv/talk redkey bus serve --port 8750
    """
    from redkey.bus.home import home_of
    from redkey.bus.runtime.relay import RelayPolicy
    from redkey.config import load
    from redkey.serving import serve_bus

    where = home.expanduser().absolute() if home is not None else home_of(os.environ)
    arguments = {"host": host, "port": port or 0, "ready_file": ready_file, "log_format": log_format}
    policy = RelayPolicy(leads="multiple" if leads == "multiple" else "single")
    raise SystemExit(serve_bus(where, load(None, {}, arguments), policy, say=click.echo, finds_port=port is None))


@command.command()
@finds_bus
@ids_option
@_JSON
@click.option("--create", metavar="NAME", help="Create a session with this name, and show it.")
@click.option("--close", "ended", metavar="ID", help="Close a session.")
@until_reader_leaves()
def sessions(home: Path | None, ids_only: bool, as_json: bool, create: str | None, ended: str | None) -> None:
    """List the open sessions; create or close one.

    \b
      redkey bus sessions --create release
      redkey bus sessions
    """
    with _client(home) as bus:
        if ended is not None:
            bus.close_session(choose_session(bus, ended))
            return
        created = bus.create_session(create) if create is not None else None
        for entry in bus.sessions():
            if created is not None and entry.id != created:
                continue
            if as_json:
                print_json({"id": entry.id, "name": entry.name})
            else:
                click.echo(str(entry.id) if ids_only else f"{entry.id}  {shown(entry.name or '')}".rstrip())


@command.command()
@finds_bus
@_SESSION
@ids_option
@_JSON
@click.option("--remove", "removed", metavar="AGENT", help="Remove an agent and the messages that wait for it.")
@until_reader_leaves()
def agents(home: Path | None, session: str | None, ids_only: bool, as_json: bool, removed: str | None) -> None:
    """List the agents of a session, in its order, or remove one."""
    with _client(home) as bus:
        chosen = choose_session(bus, session)
        if removed is not None:
            bus.remove(choose_agent(bus, removed, chosen), chosen)
            return
        for entry in bus.agents(chosen):
            if as_json:
                print_json(msgspec.to_builtins(entry))
                continue
            if ids_only:
                click.echo(shown(entry.id))
                continue
            words = ["lead" if entry.lead else "", "online" if entry.online else "away", entry.status or ""]
            click.echo("  ".join([shown(entry.id), shown(entry.name or ""), *(shown(word) for word in words if word)]))


@command.command()
@click.argument("dst", metavar="AGENT")
@click.argument("text", required=False)
@finds_bus
@_SESSION
@click.option("--as", "agent", metavar="ID", help="Send as this agent, which stays in the session [a temporary agent].")
@click.option("--wait", type=float, metavar="SECONDS", help="Wait for an answer and print it; fail if none arrives.")
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

    The message is durable when this returns: an agent that is away gets it when it reconnects.

    \b
      redkey bus send worker "please look at the build"
      redkey bus send worker --wait 60 "are you done?"
    """
    words = text if text is not None else sys.stdin.read()
    if not words.strip():
        raise click.UsageError("the text is empty; give TEXT or standard input")
    with _client(home) as bus:
        chosen = choose_session(bus, session, creates=True)
        name = agent or f"redkey-{os.getpid()}"
        bus.join(chosen, name, None if agent else "redkey")
        try:
            target = choose_agent(bus, dst) if dst != _ALL else None
            if target is None and any(_ALL in (entry.id, entry.name) for entry in bus.agents()):
                raise click.UsageError(
                    f"an agent of the session has the id or name {_ALL!r}; rename or remove it first"
                )
            message = bus.send(target, words, to_all=target is None)
            if wait is None:
                _print(message.id, {"message_id": message.id}, as_json=as_json)
                return
            _print_answer(bus, message, wait, as_json=as_json)
        finally:
            if agent is None:
                bus.leave()


def _print_answer(bus: BusClient, question: Message, seconds: float, *, as_json: bool) -> None:
    """Wait for the answer to a question, and print it."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        found = bus.receive(left)
        if found is not None and _answers(found, question):
            _print(found.text, {"src": found.src, "text": found.text}, as_json=as_json)
            return
    click.echo(f"redkey: no answer within {seconds:g} seconds", err=True)
    raise SystemExit(1)


def _answers(message: Message, question: Message) -> bool:
    """Whether a message is the answer to a question: in its conversation, or from the receiver and in no other.

    Simple clients know no conversations, so each of their messages begins its own.
    """
    alone = message.src == question.dst and message.conversation_id == message.id
    return message.kind in ("user", "reply") and (alone or message.conversation_id == question.conversation_id)


@command.command()
@finds_bus
@_SESSION
@click.option(
    "-n", "--lines", "count", type=click.IntRange(min=0), default=10, show_default=True, help="How many records."
)
@click.option("-f", "--follow", is_flag=True, help="Continue with new records.")
@_JSON
@until_reader_leaves()
def tail(home: Path | None, session: str | None, count: int, follow: bool, as_json: bool) -> None:
    """Show the last records of a session.

    \b
      redkey bus tail -f
    """
    # A command that follows survives a restart of the bus.
    with _client(home, reconnect_seconds=_RESTART_SECONDS if follow else 0) as bus:
        chosen = choose_session(bus, session, closed=True)
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
@finds_bus
@_SESSION
@click.option("--as", "agent", metavar="ID", help="Your id in the session [your user name and a number].")
@click.option("--name", help="Your display name.")
@click.option("--model", metavar="COMMAND", help="A command that answers and relays: JSON prompt in, intent out.")
def chat(home: Path | None, session: str | None, agent: str | None, name: str | None, model: str | None) -> None:
    """Chat in a session: an interactive terminal.

    A line with #mentions (a name in any case, or an id) goes to the agents that it mentions; a line without goes to the
    last writer, whom the prompt names. A line with an unknown mention is not sent. /agents lists the agents, /to NAME
    sets the recipient, /name NAME changes your name, /quit ends. With --model, a line with mentions is a task that the
    model relays, and its answers are shown.

    \b
      redkey bus chat
      > #worker is the build green?
    """
    from redkey.cli.chat import run

    with _client(home) as bus:
        chosen = choose_session(bus, session, creates=True)
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
