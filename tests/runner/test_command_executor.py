"""Programs as agents: what they get, how they answer, and the end of each way to answer wrongly."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import ConfigRefused, OutputRefused, RedKeyError, StepFailed
from redkey.runner.cost import Usage
from redkey.runner.envelope import step_input
from redkey.runner.executors.command import CommandExecutor
from redkey.runner.executors.port import Produced, Step
from redkey.runner.executors.python import PythonExecutor
from redkey.runner.mail import Mail
from redkey.runner.process import Limits
from tests.runner.samples import assignment

OUTPUT = {"success": True, "summary": "Done.", "artifacts": [], "recommendation": "proceed"}
TASK = assignment(task_id="task_1", queue_id="queue_q", plan_task_id="validate", input={"phase": 1})


def step(directory: Path) -> Step:
    return Step("You are Quinn.\n", step_input(TASK, workflow="specify"), directory)


def run(directory: Path, command: str | list[str], **options: Any) -> Produced:
    return asyncio.run(CommandExecutor(command, **options).run(step(directory)))


def code_of(directory: Path, command: str, **options: Any) -> str:
    with pytest.raises(RedKeyError) as failed:
        run(directory, command, **options)
    return failed.value.code


def say(value: Any) -> str:
    return f"cat <<'END'\n{value if isinstance(value, str) else json.dumps(value)}\nEND"


def test_the_input_is_on_stdin_and_in_a_file_the_prompt_in_another(tmp_path: Path) -> None:
    run(tmp_path, f'cat > stdin; cp "$REDKEY_INPUT_FILE" file; cp "$REDKEY_PROMPT_FILE" prompt; {say(OUTPUT)}')
    given = json.loads((tmp_path / "stdin").read_text())
    assert given == json.loads((tmp_path / "file").read_text())
    assert given["context"] == {"feature_id": None, "workflow": "specify", "iteration": 1}
    assert given["task"] == {"action": "validate", "params": {"phase": 1}}
    assert (tmp_path / "prompt").read_text() == "You are Quinn.\n"


@pytest.mark.parametrize(
    "command",
    [
        say(OUTPUT),
        say("Thinking aloud ...\n" + json.dumps(OUTPUT)),
        say("Here it is:\n```json\n" + json.dumps(OUTPUT, indent=2) + "\n```\nGood luck!"),
        f'echo noise; ({say(OUTPUT)}\n) > "$REDKEY_OUTPUT_FILE"',
        say(OUTPUT) + "; exit 3",
    ],
)
def test_the_output_is_found_where_programs_put_it(command: str, tmp_path: Path) -> None:
    command = command.replace("END; exit", "END\nexit")
    assert run(tmp_path, command).output.summary == "Done."


def test_a_list_is_run_without_a_shell(tmp_path: Path) -> None:
    assert run(tmp_path, ["printf", "%s", json.dumps({**OUTPUT, "summary": "$HOME; ls"})]).output.summary == "$HOME; ls"


def test_messages_and_usage_come_back_with_the_output(tmp_path: Path) -> None:
    message = {"to_agent": "roles.ba", "subject": "Which?", "message_type": "question", "priority": 2}
    used = [{"cost_usd": 0.25}, {"model": "claude-haiku-4-5", "input_tokens": 3}]
    lines = "\n".join(map(json.dumps, used))
    produced = run(
        tmp_path,
        f'({say(message)}\n) > "$REDKEY_OUTBOX_FILE"\n({say(lines)}\n) > "$REDKEY_USAGE_FILE"\n{say(OUTPUT)}',
    )
    assert produced.mail == (Mail("roles.ba", "Which?", message_type="question", priority=2),)
    assert produced.used == (Usage(cost_usd=0.25), Usage(model="claude-haiku-4-5", input_tokens=3))


def test_the_environment_is_clean_but_for_what_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDKEY_API_KEY", "rk_secret")
    monkeypatch.setenv("AWS_SECRET", "no")
    monkeypatch.setenv("WANTED", "yes")
    run(tmp_path, f"env > seen\n{say(OUTPUT)}", pass_on=["WANTED"])
    seen = dict(line.partition("=")[::2] for line in (tmp_path / "seen").read_text().splitlines() if "=" in line)
    assert seen["WANTED"] == "yes"
    assert "REDKEY_API_KEY" not in seen
    assert "AWS_SECRET" not in seen
    assert {name for name in seen if name.startswith("REDKEY_")} == {
        f"REDKEY_{name}_FILE" for name in ("INPUT", "PROMPT", "OUTPUT", "OUTBOX", "USAGE")
    }


def test_nothing_of_a_step_is_left_on_the_disk(tmp_path: Path) -> None:
    run(tmp_path, f'dirname "$REDKEY_INPUT_FILE" > where\n{say(OUTPUT)}')
    assert not Path((tmp_path / "where").read_text().strip()).exists()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("true", "envelope_invalid"),
        ("echo hello", "envelope_invalid"),
        ("echo '{}'", "envelope_invalid"),
        ("echo '[1, 2]'", "envelope_invalid"),
        (say({**OUTPUT, "recommendation": "skip"}), "envelope_invalid"),
        (say({**OUTPUT, "summary": 1}), "envelope_invalid"),
        (say('{"success": true, "success": false}'), "envelope_invalid"),
        (say({**OUTPUT, "artifacts": [{"path": "../x", "operation": "create", "content": ""}]}), "envelope_invalid"),
        ("head -c 1000 /dev/urandom", "envelope_invalid"),
        ("printf '[%.0s' $(seq 100000)", "envelope_invalid"),
        ("echo oops >&2; exit 3", "exit_code"),
        ("no-such-program", "exit_code"),
        ("head -c 100000000 /dev/zero", "output_too_large"),
        ('head -c 100000000 /dev/zero > "$REDKEY_OUTPUT_FILE"', "output_too_large"),
        (f'ln -s /etc/passwd "$REDKEY_OUTPUT_FILE"\n{say(OUTPUT)}', "output_too_large"),
        (f'echo x > "$REDKEY_OUTBOX_FILE"\n{say(OUTPUT)}', "outbox_invalid"),
        (f'echo x > "$REDKEY_USAGE_FILE"\n{say(OUTPUT)}', "usage_invalid"),
        (f'echo \'{{"cost_usd": -1}}\' > "$REDKEY_USAGE_FILE"\n{say(OUTPUT)}', "usage_invalid"),
    ],
)
def test_every_wrong_answer_has_its_code(command: str, code: str, tmp_path: Path) -> None:
    assert code_of(tmp_path, command) == code


def test_a_failure_tells_the_end_of_what_the_program_complained(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"(?s)exit code 3: .*the real reason"):
        run(tmp_path, "seq 100000 >&2; echo the real reason >&2; exit 3")


@pytest.mark.parametrize(
    "message",
    [
        {"to_agent": "x", "subject": "s", "message_type": "task.blocked"},
        {"to_agent": "x", "subject": "s", "message_type": "exec.gate"},
        {"to_agent": "x", "subject": ""},
        {"to_agent": "../x", "subject": "s"},
        {"to_agent": "x", "subject": "s", "priority": 0},
        {"to_agent": "x", "subject": "s", "surprise": 1},
    ],
)
def test_messages_that_are_not_an_agents_to_send_are_refused(message: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(OutputRefused) as refused:
        run(tmp_path, f'({say(message)}\n) > "$REDKEY_OUTBOX_FILE"\n{say(OUTPUT)}')
    assert refused.value.code == "outbox_invalid"


# --- python ---

AGENT = """
import os, sys

def plain(given, prompt):
    print("noise")
    said = given["task"]["action"] + " " + prompt
    return {"success": True, "summary": said, "artifacts": [], "recommendation": "proceed"}

async def later(given, prompt, outbox):
    outbox.send("human", "Hello", "World", priority=2)
    outbox.used(cost_usd=0.5)
    return plain(given, "later")

def broken(given, prompt):
    raise ValueError("no idea")

def hangs(given, prompt):
    import time
    time.sleep(600)

number = 3
"""


def run_python(directory: Path, function: str, **options: Any) -> Produced:
    (directory / "lib").mkdir()
    (directory / "lib" / "my_agent.py").write_text(AGENT)
    executor = PythonExecutor(f"my_agent:{function}", path=[str(directory / "lib")], **options)
    return asyncio.run(executor.run(step(directory)))


def test_a_python_callable_is_an_agent(tmp_path: Path) -> None:
    assert run_python(tmp_path, "plain").output.summary == "validate You are Quinn.\n"


def test_a_coroutine_may_send_and_say_what_it_used(tmp_path: Path) -> None:
    produced = run_python(tmp_path, "later")
    assert produced.mail == (Mail("human", "Hello", "World", priority=2),)
    assert produced.used == (Usage(cost_usd=0.5),)


@pytest.mark.parametrize(
    ("function", "words"), [("broken", "no idea"), ("missing", "no attribute"), ("number", "not callable")]
)
def test_a_callable_that_fails_tells_why(function: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=words) as failed:
        run_python(tmp_path, function)
    assert failed.value.code == "exit_code"


def test_a_callable_that_hangs_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as failed:
        run_python(tmp_path, "hangs", limits=Limits(seconds=1, grace_seconds=0.1))
    assert failed.value.code == "timed_out"


@pytest.mark.parametrize("target", ["", "x", "a b:c", "os:system('x')", ":f"])
def test_a_name_that_names_no_function_is_refused_at_once(target: str) -> None:
    with pytest.raises(ConfigRefused):
        PythonExecutor(target)


def test_a_worktree_cannot_shadow_modules(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    assert run_python(tmp_path, "plain").output.success
