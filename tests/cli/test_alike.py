"""Commands are alike: lists print ids alone with -q, and everything that asks a server answers in JSON with --json."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from redkey.cli import main

# Commands that ask a server and have no --json, because what they print is the document itself.
DOCUMENTS = {"artifact get", "receipt export", "receipt get", "receipt keys", "ledger export"}


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _commands(found, (*path, name))


COMMANDS = dict(_commands(main))


def _options(name: str) -> dict[str, str]:
    options = [one for one in COMMANDS[name].params if isinstance(one, click.Option)]
    return {word: one.help or "" for one in options for word in one.opts}


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.endswith(" list")])
def test_a_list_prints_ids_alone_or_json(name: str) -> None:
    options = _options(name)
    assert options["-q"] == options["--quiet"] == "Ids alone, one a line."
    assert "--json" in options


def test_whatever_asks_a_server_answers_in_json() -> None:
    without = {name for name in COMMANDS if "--url" in _options(name) and "--json" not in _options(name)}
    assert without - DOCUMENTS == set()
