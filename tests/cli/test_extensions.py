"""Extensions and lineage on the command line: taken by every command that records something, and shown again."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import pytest

from redkey.cli import main
from redkey.shapes.operations import operations
from redkey.shapes.signature import parameters
from tests.cli.test_daily_commands import _call, _does
from tests.harness.server import Server, serving

# Commands that are written by hand and call an operation that takes extensions.
WRITTEN = {
    "agents.register": "agent register",
    "agents.update": "agent activate",
    "tasks.claim": "claim take",
    "tasks.create": "task create",
    "queues.claim_next": "claim next",
    "queues.update": "queue pause",
    "claims.heartbeat": "claim heartbeat",
    "claims.report_progress": "task progress",
    "claims.complete": "claim complete",
    "inbox.send": "inbox send",
    "workflows.start": "workflow start",
    "workspaces.set_policy": "workspace policy",
    "workspaces.raise_rules": "workspace raise-rules",
}
UNKNOWN = "task_01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("extensions")) as running:
        yield running


def test_every_command_that_records_takes_extensions() -> None:
    context, lacking, seen = click.Context(main), [], 0
    for operation in operations():
        if not any(one.name == "extensions" for one in parameters(operation)):
            continue
        declared = " ".join(word for word in operation.command.split() if word.islower())
        for words in filter(None, {declared, WRITTEN.get(operation.method_name, "")}):
            command: click.Command | None = main
            for word in words.split():
                assert isinstance(command, click.Group)
                command = command.get_command(context, word)
            assert command is not None, words
            seen += 1
            if "extensions" not in {one.name for one in command.params}:
                lacking.append(words)
    assert lacking == []
    assert seen >= len(WRITTEN) + 20


def test_extensions_and_lineage_are_given_recorded_and_shown(server: Server) -> None:
    def data(name: str) -> list[str]:
        return ["--extensions", json.dumps({"com.example.shop": {"of": name, "at": [1, None]}})]

    _does(server, "agent", "register", "ada", "--no-key", *data("agent.registered"))
    parent, before = (_does(server, "task", "create", "--title", title, "-q").strip() for title in ("Whole", "Before"))
    task = _does(
        *(server, "task", "create", "--title", "Part", "-q", "--parent-task-id", parent, "--reference", before),
        *("--reference", parent, "--correlation-id", "order:4711", *data("task.created")),
    ).strip()
    claim = _does(server, "claim", "take", task, "--agent", "ada", "-q", *data("task.claim_attempted")).strip()
    _does(server, "claim", "start", claim, *data("task.started"))
    _does(server, "task", "progress", task, "Half.", *data("task.progress"))
    _does(server, "claim", "complete", claim, "--summary", "Done.", *data("task.complete"))
    _does(server, "queue", "pause", "default", *data("queue.updated"))
    _does(server, "queue", "resume", "default")
    _does(server, "inbox", "send", "--to", "human", "--subject", "Done", *data("inbox.sent"))
    _does(server, "workspace", "policy", "--public-receipts", *data("workspace.policy_set"))
    nexts = _does(server, "claim", "next", "--agent", "ada", "-q", *data("next")).strip()
    assert nexts.startswith("clm_")
    events = [json.loads(line) for line in _does(server, "events", "tail", "-n", "100", "--json").splitlines()]
    said = {(one["extensions"]["com.example.shop"]["of"], one["type"]) for one in events if "extensions" in one}
    plain = "agent.registered task.created task.claim_attempted task.started task.progress task.complete queue.updated"
    plain += " inbox.sent workspace.policy_set"
    assert said == {*((name, name) for name in plain.split()), ("next", "task.claim_attempted")}
    shown = {line.split("  ")[0]: line.partition("  ")[2].strip() for line in _show(server, task)}
    assert shown["parent"] == parent
    assert shown["references"] == f"{before}, {parent}"
    assert shown["correlation"] == "order:4711"
    assert json.loads(shown["extensions"]) == {"com.example.shop": {"of": "task.created", "at": [1, None]}}


def _show(server: Server, task: str) -> list[str]:
    return _does(server, "task", "show", task).splitlines()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--extensions", "{bad", "Invalid value for '--extensions'"),
        ("--extensions", "[1]", "extensions are a JSON object"),
        ("--extensions", '{"mine": 1}', "'mine' is no namespaced name"),
        ("--correlation-id", "4711", "/correlationId"),
        ("--parent-task-id", UNKNOWN, f"no such task in this workspace: {UNKNOWN} (from --parent-task-id)"),
        ("--reference", UNKNOWN, f"no such task in this workspace: {UNKNOWN} (from --reference)"),
    ],
)
def test_a_wrong_one_is_named_and_creates_nothing(server: Server, option: str, value: str, said: str) -> None:
    result = _call(server, "task", "create", "--queue", "untouched", "--title", "T", option, value)
    assert result.exit_code in (1, 2)
    assert said in result.output
    assert "untouched" not in _does(server, "queue", "list")
