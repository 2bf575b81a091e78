"""Commands are alike: what lists or creates prints ids alone with -q, and every command answers in JSON with --json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.client import RedKey
from tests.harness.server import Server, serving

PLAN = Path(__file__).resolve().parents[2] / "examples" / "podcast" / "plan.json"
IDS_ALONE = "Only ids, one per line."
# Commands without --json: what they print is a document of its own form, or they run until they are stopped.
DOCUMENTS = {
    *("artifact get", "receipt export", "receipt get", "receipt keys", "ledger dump", "ledger export", "ledger replay"),
    *("signer checkpoint", "witness cosign", "step migrate", "openapi", "completion"),
}
PROGRAMS = {"serve", "bus serve", "bus chat", "witness serve", "hedera standin", "mcp hook"}
# What lists or creates things that have ids is told by its last word; these are the others.
VERBS = ("list", "create", "begin", "invite", "register", "recover")
OTHERS = {
    *("claim next", "claim take", "events tail", "agent history", "task messages"),
    *("workflow start", "inbox send", "bus sessions", "bus agents"),
}
# Each in its turn makes one thing, in a workspace that has what the ones before made: command -> its arguments.
MADE = {
    "agent register": "ada",
    "role create": "writer",
    "queue create": "jobs",
    "project create": "Season",
    "phase create": "{project create} Draft",
    "task create": "--title One --queue jobs",
    "claim take": "{task create} --agent ada",
    "workflow start": f"{PLAN} --queue jobs",
    "inbox send": "--to ada --subject Hello",
    "key create": "--scope read --name reader",
    "person invite": "ada@example.com",
    "webhook create": "https://example.com/events",
    "workspace create": "--name Other",
}
# What a list must be told so that it has the new thing.
CHOSEN = {"inbox list": "--to ada", "key list": "--workspace {}", "person list": "--workspace {}"}
SHOWN_ONCE = {"agent register", "key create", "person invite", "webhook create", "workspace create"}


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
WITH_IDS = {name for name in COMMANDS if name.split()[-1] in VERBS} | OTHERS


def _options(name: str) -> dict[str, str]:
    options = [one for one in COMMANDS[name].params if isinstance(one, click.Option)]
    return {word: one.help or "" for one in options for word in one.opts}


def _call(server: Server, *words: str) -> Result:
    environment = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key, "REDKEY_DATA": None, "REDKEY_AGENT_ID": None}
    return CliRunner().invoke(main, words, env=environment)


@pytest.mark.parametrize("name", sorted(WITH_IDS))
def test_what_lists_or_creates_prints_ids_alone_or_json(name: str) -> None:
    options = _options(name)
    assert options.get("-q") == options.get("--quiet") == IDS_ALONE
    assert "--json" in options


def test_nothing_else_prints_ids_alone() -> None:
    assert {name for name in COMMANDS if _options(name).get("-q") == IDS_ALONE} == WITH_IDS


def test_every_command_answers_in_json() -> None:
    without = {name for name in COMMANDS if "--json" not in _options(name)}
    assert without == DOCUMENTS | PROGRAMS


def test_keys_and_witnesses_are_shown_in_json(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        data, witness = str(server.data), str(tmp_path / "w")
        added = _told("signer", "rotate", data)["added"]
        assert added in CliRunner().invoke(main, ["signer", "list", data, "-q"]).stdout.split()
        made = _told("witness", "init", "--name", "example.org/w", "--dir", witness)["witness"]
        assert _told("witness", "trust", "--dir", witness, added) == {"trusted": [added]}
        known = _told("witness", "status", "--dir", witness)
        assert known == {"witness": made, "logs": [{"key": added, "retired": None}], "seen": [], "evidence": []}
        request, answer = tmp_path / "request", tmp_path / "answer"
        request.write_text(CliRunner().invoke(main, ["signer", "checkpoint", data, "--old", "0"]).stdout)
        answer.write_text(CliRunner().invoke(main, ["witness", "cosign", "--dir", witness, str(request)]).stdout)
        kept = _told("signer", "cosigned", data, str(answer), "--witness", made)
        assert kept["size"] > 0
        [seen] = _told("witness", "status", "--dir", witness)["seen"]
        assert (seen["origin"], seen["size"]) == (kept["origin"], kept["size"])
        assert _told("signer", "retire", data, added) == {"retired": added}


def _told(*words: str) -> Any:
    result = CliRunner().invoke(main, [*words, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_quiet_prints_the_id_of_what_was_created_and_the_lists_name_it(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        ids: dict[str, str] = {}
        for name, arguments in MADE.items():
            result = _call(server, *name.split(), *arguments.format_map(ids).split(), "-q")
            assert result.exit_code == 0, (name, result.output)
            assert re.fullmatch(r"\S+\n", result.stdout), (name, result.stdout)
            ids[name] = result.stdout.strip()
            # A secret is not lost, and not taken for an id.
            assert ("shown only now: " in result.stderr) == (name in SHOWN_ONCE), (name, result.stderr)
        with RedKey(server.url, server.key) as rk:
            assert rk.phases.get(ids["phase create"]).project_id == ids["project create"]
        for name, new_id in ids.items():
            listing = f"{name.split()[0]} list"
            if listing in COMMANDS and name != "claim take":
                among = CHOSEN.get(listing, "").format(server.workspace_id).split()
                assert new_id in _call(server, *listing.split(), *among, "-q").stdout.split(), name
        messages = _call(server, "task", "messages", ids["task create"], "-q")
        assert (messages.exit_code, messages.stdout) == (0, "")
        history = _call(server, "agent", "history", "ada", "-q").stdout.split()
        shown = json.loads(_call(server, "events", "show", history[0], "--json").stdout)
        assert (shown["type"], shown["subject"]["id"]) == ("task.claimed", ids["task create"])
        again = _call(server, "agent", "register", "ada", "-q")
        assert (again.stdout.strip(), again.stderr) == (ids["agent register"], "")
    recovered = _call(server, "key", "recover", str(server.data), "-q")
    assert re.fullmatch(r"key_\S+\n", recovered.stdout)
    assert "api key, shown only now: rk_" in recovered.stderr
