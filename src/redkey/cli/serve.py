"""`redkey serve`: the server, in this process, until a signal comes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

# The settings that may cause a server to be refused.
_REFUSED = ("data", "port", "uds")


@click.command()
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A TOML file with settings [REDKEY_CONFIG, else redkey.toml here].",
)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="The data directory [.redkey].")
@click.option("--store", help="Where the ledger is, for several servers: postgresql://user@host/database.")
@click.option("--host", help="Where to listen [127.0.0.1].")
@click.option("--port", type=click.IntRange(0, 65535), help="The port; 0 takes a free one [8700].")
@click.option("--uds", type=click.Path(path_type=Path), help="Listen on this Unix socket too.")
@click.option("--ready-file", type=click.Path(path_type=Path), help="Written once the server answers, as JSON.")
@click.option("--log-format", type=click.Choice(["auto", "json", "text"]), help="How logs are written.")
def command(file: Path | None, **arguments: Any) -> None:
    """Serve the API.

    A fresh data directory gets a workspace and a first key, kept in credentials.json there, where the other commands
    find it. Every setting can also come from the TOML file or from a REDKEY_ variable; arguments win. `redkey config
    show` explains where each one comes from.
    """
    from redkey.cli.next_step import remember, remember_origins
    from redkey.config import config_file, load_explained
    from redkey.serving import serve

    remember(arguments, url=None, data=arguments["data"])
    loaded = load_explained(config_file(file, os.environ), os.environ, arguments)
    remember_origins({name: (getattr(loaded.config, name), loaded.sources.get(name, "default")) for name in _REFUSED})
    raise SystemExit(serve(loaded.config, say=click.echo))
