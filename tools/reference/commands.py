"""The command line reference, generated from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from redkey.cli import COMMANDS, SECTIONS, main
from tools.reference.markdown import table

_INTRO = """# Commands

All commands take `--help`. Exit codes: 0 the answer is yes, 1 it is no (invalid, damaged, refused), 2 the command was
used incorrectly, 130 stopped by Ctrl-C.
"""


def page() -> str:
    """Every command and subcommand, by the sections of the help."""
    parts = [_INTRO]
    context = click.Context(main, info_name="redkey")
    further = {"More": [name for name in main.list_commands(context) if name not in COMMANDS]}
    for title, section in {**SECTIONS, **further}.items():
        parts += [f"## {title}\n"] if section else []
        for name in section:
            command = main.get_command(context, name)
            if command is None:
                raise LookupError(name)
            parts += _commands(command, f"redkey {name}", context)
    return "\n".join(parts)


def _commands(command: click.Command, path: str, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=path, parent=None)
    yield _entry(command, path, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            if subcommand is not None and not subcommand.hidden:
                yield from _commands(subcommand, f"{path} {name}", context)


def _entry(command: click.Command, path: str, context: click.Context) -> str:
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    parts = [f"### `{usage}`\n", _help(command) + "\n"]
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and not (isinstance(parameter, click.Option) and "--help" in parameter.opts):
            rows.append((f"`{record[0]}`", record[1]))
    parts.append(table(("option", "meaning"), rows))
    return "\n".join(part for part in parts if part)


def _help(command: click.Command) -> str:
    """The help as Markdown: paragraphs that click keeps unwrapped become code blocks."""
    paragraphs = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b\n"):
            paragraphs.append("```text\n" + inspect.cleandoc(paragraph.removeprefix("\b\n")) + "\n```")
        else:
            paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)
