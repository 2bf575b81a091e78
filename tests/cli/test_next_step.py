"""Next steps: every `next:` line of the command line is a command that can be pasted, and works."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import redkey.cli
import redkey.readmodel
from redkey.cli.next_step import _INSTEAD, _STEPS, Step, own_command, step_for
from redkey.cli.refusal import _BY_CODE
from redkey.shapes.problem import NextStep
from tests.cli.mistakes import invoke
from tests.harness.server import Server, serving

READMODEL = Path(redkey.readmodel.__file__).parent
CLI = Path(redkey.cli.__file__).parent
# Commands that go on until they are stopped, or that end otherwise than by success: why they are not run here.
NOT_RUN = {
    "redkey serve": "tests/docs and tests/cli/test_mistakes.py start servers",
    "redkey key recover": "tests/cli/test_key_recover.py and test_restore_command.py run it",
    "redkey plan validate": "it says what is wrong with the plan that was refused: tests/cli/test_mistakes.py",
    "redkey task watch": "tests/cli/test_daily_commands.py watches tasks to their ends",
    "redkey workflow watch": "tests/cli/test_daily_commands.py watches runs to their ends",
}


def _actions() -> set[str]:
    text = (READMODEL / "explain.py").read_text() + (READMODEL / "replies.py").read_text()
    named = re.findall(r'action="(\w+)"', text)
    # The steps after a rejection are in a table of their own.
    table = text.partition("_AFTER_REJECTION = {")[2].partition("}")[0]
    return {*named, *re.findall(r': "(\w+)"', table), *re.findall(r'_POLL = "(\w+)"', text)}


def test_no_step_of_the_server_is_without_a_command_and_no_command_without_a_step() -> None:
    assert _actions() == set(_STEPS)


def test_a_step_is_filled_in_and_a_newer_servers_words_stay() -> None:
    assert step_for(NextStep(action="retry", task_id="task_1")) == Step("redkey task retry task_1")
    assert step_for(NextStep(action="dance_a_jig")) == Step(hint="dance a jig")
    assert step_for(NextStep(action="none")) == Step()
    missed = NextStep(action="poll_available_tasks", queue_id="queue_jobs")
    assert step_for(missed, "agt_1").command == "redkey claim next --queue jobs --agent agt_1"
    assert step_for(missed).command == "redkey task list --queue jobs"


def _templates() -> Iterator[tuple[str, str]]:
    """Every command that is named after `next:`, with braces where a value is filled in, and where it is written."""
    for name, step in [*_STEPS.items(), *_BY_CODE.items()]:
        yield step.command, name
    for name, command in _INSTEAD.items():
        yield command, name
    for path in sorted(CLI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = node.func.id if isinstance(node.func, ast.Name) else ""
                values = [word.value for word in node.keywords if word.arg == "next_step"]
                values += node.args[:1] if called == "Step" else []
                for value in values:
                    yield _text(value), path.name


def _text(value: ast.expr) -> str:
    if isinstance(value, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "{value}" for part in value.values]
        return "".join(map(str, parts))
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


TEMPLATES = sorted({command for command, _ in _templates() if command})


def test_nothing_else_prints_next_lines_and_none_has_a_placeholder() -> None:
    others = [path.name for path in CLI.rglob("*.py") if "next: " in path.read_text() and path.name != "next_step.py"]
    assert others == []
    assert len(TEMPLATES) > 35
    for command in TEMPLATES:
        bare = re.sub(r"\{\w+\}", "", command)
        assert not re.search(r"<|\.\.\.|\b[A-Z]{2,}\b(?<!REDKEY_API_KEY)", bare.replace("REDKEY_API_KEY", "")), command
        assert "," not in bare, command


class Scene:
    """Something of everything that next steps speak of."""

    def __init__(self, server: Server) -> None:
        self._account = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
        for words in ("queue create jobs", "role create writer", "role create role_writer-1 "):
            self.does(words)
        agent = json.loads(self.does("agent register ada --role writer --json"))
        self.agent, self.key = agent["agentId"], agent["apiKey"]
        self.workflow = ""

    def does(self, words: str, **environment: str) -> str:
        result = invoke(*shlex.split(words), **{**self._account, **environment})
        assert result.exit_code == 0, (words, result.output)
        return result.stdout.strip()

    def task(self, options: str = "") -> str:
        return self.does(f"task create --queue jobs --title T {options}")

    def values(self, command: str) -> dict[str, str]:
        """What a template is filled with: fresh things, in the state that the step is for."""
        found = {"agent_id": self.agent, "queue_id": "jobs", "role_id": "writer", "slug": "ada", "name": "writer"}
        found |= {"queue": "jobs", "id": "role_writer", "agent": "ada", "known.slug": "ada"}
        task = self.task()
        found |= {"task_id": task, "value": task, "plan": "plan.json"}
        if "task retry" in command:
            self.does(f"task cancel {task}")
        if "gate show" in command:
            gated = self.task("--gate")
            claim = self.does(f"claim take {gated} --agent ada -q", REDKEY_API_KEY=self.key)
            self.does(f"claim complete {claim}", REDKEY_API_KEY=self.key)
            found |= dict.fromkeys(("detail", "gate_id"), self.does("gate list -q").split()[-1])
        if "workflow " in command:
            found["detail"] = self._run(paused="resume" in command)
        if "webhook" in command:
            made = self.does("webhook create https://example.com/x --type task.complete --json")
            found["webhook_id"] = json.loads(made)["webhookId"]
        if "agent show" in command or "agent activate" in command:
            found["value"] = "ada"
        if "queue resume" in command:
            found["value"] = "jobs"
        return found

    def _run(self, *, paused: bool) -> str:
        plan = Path(redkey.cli.__file__).parents[3] / "examples" / "podcast" / "plan.json"
        run = self.does(f"workflow start {plan} --queue jobs")
        if paused:
            self.does(f"workflow pause {run}")
        return run


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with serving(tmp_path_factory.mktemp("next")) as server:
        yield Scene(server)


@pytest.mark.parametrize(
    "template", [one for one in TEMPLATES if not one.removeprefix("{value}").startswith(tuple(NOT_RUN))]
)
def test_a_next_step_can_be_pasted_and_works(scene: Scene, template: str) -> None:
    if template == "unset REDKEY_API_KEY":
        return
    command = re.sub(r"\{([\w.]+)\}", lambda found: scene.values(template)[found[1]], template)
    words = shlex.split(command)
    assert words[0] == "redkey"
    scene.does(shlex.join(words[1:]))


def test_next_steps_go_to_the_server_that_was_named(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        missing = invoke("task", "show", "task_ZZ", "--data", str(server.data))
        assert f"next: {own_command()} task list --data {server.data}\n" in missing.output
        listed = invoke(*shlex.split(missing.output.rpartition("next: ")[2])[1:])
        assert listed.exit_code == 0, listed.output
