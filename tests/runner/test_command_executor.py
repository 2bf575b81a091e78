"""Programs as agents: what they get, how they answer, and the end of each way to answer wrongly."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import ConfigRefused, OutputRefused, RedKeyError, StepFailed
from redkey.runner.cost import Meter, Usage
from redkey.runner.envelope import step_input
from redkey.runner.executors.command import CommandExecutor, files_left_behind, placed_command
from redkey.runner.executors.port import Produced, Step, Terms
from redkey.runner.executors.python import PythonExecutor
from redkey.runner.mail import Mail
from redkey.runner.process import Limits
from tests.harness.samples import assignment
from tests.runner.processes import GROWING_SECONDS

OUTPUT = {"success": True, "summary": "Done.", "artifacts": [], "recommendation": "proceed"}
TASK = assignment(task_id="task_1", queue_id="queue_q", plan_task_id="validate", input={"phase": 1})


def step(directory: Path, meter: Meter | None = None) -> Step:
    return Step("You are Quinn.\n", step_input(TASK, workflow="specify"), directory, meter or Meter())


def run(directory: Path, command: str | list[str], meter: Meter | None = None, **options: Any) -> Produced:
    return asyncio.run(CommandExecutor(command, Terms(**options)).run(step(directory, meter)))


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
        say("12:00 INFO begun {\n12:01 INFO {}\n" + json.dumps(OUTPUT, indent=2)),
        say("{not json\n" + json.dumps(OUTPUT, indent=2) + "\n12:02 INFO ended"),
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
        meter := Meter(),
    )
    assert produced.mail == (Mail("roles.ba", "Which?", message_type="question", priority=2),)
    assert meter.used == [Usage(cost_usd=0.25), Usage(model="claude-haiku-4-5", input_tokens=3)]


@pytest.mark.parametrize("end", ["exit 3", "sleep 600", "kill -9 $$", "trap '' TERM; sleep 600 & sleep 600"])
def test_what_a_program_used_counts_however_it_ends(end: str, tmp_path: Path) -> None:
    used = 'echo \'{"cost_usd": 0.25}\' > "$REDKEY_USAGE_FILE"'
    for seconds in GROWING_SECONDS:
        meter = Meter()
        with pytest.raises(StepFailed):
            run(tmp_path, f"{used}\n: > begun\n{end}", meter, limits=Limits(seconds=seconds, grace_seconds=0.2))
        if (tmp_path / "begun").exists():
            break
    assert meter.cost_usd == 0.25


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
        ("true && no-such-program", "spawn_failed"),
        ("./no-such-program", "spawn_failed"),
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


def run_python(directory: Path, function: str, meter: Meter | None = None, **options: Any) -> Produced:
    (directory / "lib").mkdir()
    (directory / "lib" / "my_agent.py").write_text(AGENT)
    executor = PythonExecutor(f"my_agent:{function}", Terms(**options), path=[str(directory / "lib")])
    return asyncio.run(executor.run(step(directory, meter)))


def test_a_python_callable_is_an_agent(tmp_path: Path) -> None:
    assert run_python(tmp_path, "plain").output.summary == "validate You are Quinn.\n"


def test_a_coroutine_may_send_and_say_what_it_used(tmp_path: Path) -> None:
    meter = Meter()
    produced = run_python(tmp_path, "later", meter)
    assert produced.mail == (Mail("human", "Hello", "World", priority=2),)
    assert meter.used == [Usage(cost_usd=0.5)]


@pytest.mark.parametrize(("function", "words"), [("missing", "no attribute"), ("number", "not callable")])
def test_a_function_that_is_not_there_is_refused_at_the_start(function: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match=words) as refused:
        run_python(tmp_path, function)
    assert refused.value.code == "function_missing"


@pytest.mark.parametrize(
    "command",
    [
        "no-such-program",
        "no-such-program --flag | cat",
        "A=1 B=2 no-such-program",
        "/no/such/program x",
        ["no-such"],
        [],
    ],
)
def test_a_program_that_is_not_there_is_refused_at_the_start(command: str | list[str]) -> None:
    with pytest.raises(ConfigRefused) as refused:
        CommandExecutor(command, Terms())
    assert refused.value.code == "program_missing"


@pytest.mark.parametrize(
    "command",
    [
        "if true; then echo; fi",
        "cd /tmp && ls",
        "A=1 sh -c x",
        "./in-the-worktree.sh",
        "$SHELL -c x",
        "'",
        "(ls)",
        ": ok",
    ],
)
def test_what_the_shell_may_know_is_left_to_it(command: str) -> None:
    CommandExecutor(command, Terms())


def test_a_callable_that_fails_tells_why(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="no idea") as failed:
        run_python(tmp_path, "broken")
    assert failed.value.code == "exit_code"


def test_a_callable_that_hangs_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as failed:
        run_python(tmp_path, "hangs", limits=Limits(seconds=1, grace_seconds=0.1))
    assert failed.value.code == "timed_out"


@pytest.mark.parametrize("target", ["", "x", "a b:c", "os:system('x')", ":f"])
def test_a_name_that_names_no_function_is_refused_at_once(target: str) -> None:
    with pytest.raises(ConfigRefused):
        PythonExecutor(target, Terms())


def test_a_worktree_cannot_shadow_modules(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    assert run_python(tmp_path, "plain").output.success


def test_a_program_by_a_relative_path_is_found_from_where_the_runner_was_started(tmp_path: Path) -> None:
    (tmp_path / "agent.sh").write_text("")
    found = str(tmp_path / "agent.sh")
    assert placed_command("./agent.sh --x ./agent.sh", tmp_path) == f"{found} --x ./agent.sh"
    assert placed_command("A=1 ./agent.sh", tmp_path) == f"A=1 {found}"
    assert placed_command(["./agent.sh", "x"], tmp_path) == [found, "x"]
    for plain in ("true", "/bin/true x", "'", "$X/y"):
        assert placed_command(plain, tmp_path) == plain
    with pytest.raises(ConfigRefused, match="in " + str(tmp_path)) as refused:
        placed_command("./agnet.sh", tmp_path)
    assert refused.value.code == "program_missing"
    assert files_left_behind("sh agent.sh other.sh --agent.sh", tmp_path) == ["agent.sh"]
    assert files_left_behind(f"sh {found}", tmp_path) == []
