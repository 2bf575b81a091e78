"""`redkey bus`: serve the bus, see who is there, send, follow and talk."""

from __future__ import annotations

import os
from pathlib import Path

import click

_HOME = click.option(
    "--home", type=click.Path(path_type=Path, file_okay=False), help="The bus's home [WEAVE_HOME, or ~/.weave]."
)


@click.group()
def command() -> None:
    """Live talk between agents: sessions, agents, messages.

    A bus keeps its sockets and its log in a home directory. It speaks Weave v0 over Unix sockets, and the same over
    HTTP on this machine.
    """


@command.command()
@_HOME
@click.option("-weave-home", "weave_home", type=click.Path(path_type=Path, file_okay=False), hidden=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the HTTP face listens: this machine only.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The HTTP face's port [a free one].")
@click.option("--leads", type=click.Choice(["single", "multiple"]), default="single", show_default=True,
              help="Whether a message without destination goes to one lead or to all.")  # fmt: skip
@click.option("--ready-file", type=click.Path(path_type=Path), help="Written once the bus answers, as JSON.")
@click.option("--log-format", type=click.Choice(["auto", "json", "text"]), default="auto", help="How logs are written.")
def serve(
    home: Path | None,
    weave_home: Path | None,
    host: str,
    port: int,
    leads: str,
    ready_file: Path | None,
    log_format: str,
) -> None:
    """Serve a bus until a signal comes.

    The HTTP face takes the token that is kept in HOME/token, which its owner alone can read.

    \b
      redkey bus serve
      WEAVE_HOME=/srv/talk redkey bus serve --port 8750
    """
    from redkey.bus.runtime.relay import Policy
    from redkey.config import load
    from redkey.serving import serve_bus

    arguments = {"host": host, "port": port, "ready_file": ready_file, "log_format": log_format}
    policy = Policy(leads="multiple" if leads == "multiple" else "single")
    raise SystemExit(serve_bus(_home(home or weave_home), load(None, {}, arguments), policy, say=click.echo))


def _home(given: Path | None) -> Path:
    from redkey.bus.home import home_of

    return given.expanduser().absolute() if given is not None else home_of(os.environ)
