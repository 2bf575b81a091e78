"""`redkey config`: the settings of a server, and where each comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from redkey.cli.report import print_json
from redkey.cli.screen import print_table, until_reader_leaves


@click.group()
def command() -> None:
    """See settings, and where they come from."""


@command.command()
@click.argument("name", required=False)
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A TOML file with settings [REDKEY_CONFIG, else redkey.toml here].",
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text, one object per line.")
@until_reader_leaves()
def show(name: str | None, file: Path | None, as_json: bool) -> None:
    """Show the settings that `redkey serve` would take here, and where each comes from.

    NAME is a setting or a table. Options of `redkey serve` override REDKEY_ variables, which override the file, and the
    file over the defaults.

    \b
      redkey config show
      redkey config show limits
      REDKEY_PORT=8710 redkey config show port
    """
    from redkey.config import config_file, load_explained, setting_names

    loaded = load_explained(config_file(file, os.environ), os.environ, {})
    names = [one for one in setting_names() if name is None or one == name or one.startswith(f"{name}.")]
    if not names:
        from difflib import get_close_matches

        known = {part for one in setting_names() for part in (one, one.rpartition(".")[0]) if part}
        meant = next(iter(get_close_matches(name or "", known)), None)
        advice = f"did you mean {meant}?" if meant else "redkey config show lists all of them"
        raise click.UsageError(f"there is no setting {name}; {advice}")
    rows = [(one, _value(loaded.config, one), loaded.sources.get(one, "default")) for one in names]
    if as_json:
        for setting, value, source in rows:
            print_json({"setting": setting, "value": value, "source": source})
        return
    print_table(("SETTING", "VALUE", "FROM"), [(setting, _shown(value), source) for setting, value, source in rows])


def _value(config: Any, name: str) -> Any:
    import msgspec

    found = config
    for part in name.split("."):
        found = getattr(found, part)
    return msgspec.to_builtins(found, enc_hook=str)


def _shown(value: Any) -> str:
    """Format a value as in the settings file; an empty string for one that is not set."""
    if value is None or value in ("", (), [], {}):
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
