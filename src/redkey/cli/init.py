"""`redkey init`: prepare a directory for a server of its own."""

from __future__ import annotations

from pathlib import Path

import click

from redkey.cli.report import print_json, shown
from redkey.cli.screen import tell

_TEMPLATE = """\
# Settings of `redkey serve` in this project. Remove the # of a line to change it. REDKEY_ variables and options win
# over this file; `redkey config show` lists every setting, its value and where it comes from.

# data = ".redkey"
# host = "127.0.0.1"
# port = 8700

# [limits]
# body_bytes = 1048576
"""


@click.command()
@click.argument("directory", metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def command(directory: Path, as_json: bool) -> None:
    """Prepare DIR [this directory] for a server of its own.

    It gets redkey.toml for settings, which belongs in your repository, and .redkey for data and keys, which does not:
    a .gitignore in it keeps it out. Existing files are not changed.

    \b
      redkey init
      redkey serve
    """
    from redkey.config import PROJECT_FILE, load
    from redkey.discovery import keep_out_of_repositories
    from redkey.errors import ConfigRefused

    file, created = directory / PROJECT_FILE, []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(_TEMPLATE, encoding="utf-8")
            created.append(file)
        # A project that was prepared before may keep its data in another directory.
        data = directory / load(file, {}, {}).data
        if not data.exists():
            data.mkdir(mode=0o700, parents=True)
            created.append(data)
        keep_out_of_repositories(data)
    except OSError as cause:
        raise ConfigRefused(
            f"{cause.filename or directory} cannot be written: {cause.strerror}", code="directory_refused"
        ) from cause
    if as_json:
        print_json({"config": str(file), "data": str(data), "created": [str(path) for path in created]})
        return
    entered = "" if directory == Path() else f"cd {shown(str(directory))} && "
    sentence = f"created {' and '.join(str(path) for path in created)}" if created else f"{file} and {data} are ready"
    tell(sentence, next_step=f"{entered}redkey serve")
