"""Claude Code, Codex and Gemini as agents: their transcripts read, their errors judged; opt-in, the real programs.

The real ones run with `REDKEY_TEST_CLIS=DIR`, where `npm install` has put what `command_lines/package.json` pins. They
talk to a model server on the loopback, in a throw-away home. `REDKEY_WRITE_TRANSCRIPTS=1` writes the fixtures anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from redkey.errors import AgentUnavailable, ConfigRefused, StepFailed
from redkey.runner.cost import Meter, Usage, price_table
from redkey.runner.envelope import step_input
from redkey.runner.executors.claude_code import ClaudeCode
from redkey.runner.executors.codex import Codex
from redkey.runner.executors.gemini import Gemini
from redkey.runner.executors.headless import Asked, Headless, HeadlessExecutor, judge, reset_time
from redkey.runner.executors.patience import Busy
from redkey.runner.executors.port import Produced, Step, Terms
from redkey.runner.process import Limits
from tests.harness.models import ModelServer, Problem, Reply, model_server
from tests.harness.samples import assignment
from tests.harness.scene import Scene
from tests.runner.processes import GROWING_SECONDS
from tests.runner.repository import make_repository

FOLDER = Path(__file__).with_name("command_lines")
PINNED = json.loads((FOLDER / "package.json").read_text())["dependencies"]
ENVELOPE = {"success": True, "summary": "Wrote it.", "artifacts": [], "notes": [], "recommendation": "proceed"}
MODELS = {"claude": "claude-sonnet-4-6", "codex": "gpt-5", "gemini": "gemini-2.5-pro"}
KINDS: dict[str, Headless] = {"claude": ClaudeCode(), "codex": Codex(), "gemini": Gemini()}
PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "gemini": "@google/gemini-cli"}


def transcript(program: str, what: str = "done") -> Path:
    return FOLDER / f"{program}-{PINNED[PACKAGES[program]]}-{what}.jsonl"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for programs, first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def replay(programs: Path, program: str, text: str, *, code: int = 0, more: str = "") -> None:
    """A program that says what the real one said."""
    said = programs / f"{program}.said"
    said.write_text(text)
    path = programs / program
    path.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > "$HOME/arguments"\ncat > "$HOME/stdin"\n{more}\ncat {said}\nexit {code}\n'
    )
    path.chmod(0o755)


def run(directory: Path, program: str, meter: Meter | None = None, **options: Any) -> Produced:
    step = Step("You are Quinn.", step_input(assignment(), workflow="w"), directory, meter or Meter(price_table()))
    return asyncio.run(HeadlessExecutor(KINDS[program], MODELS[program], Terms(**options)).run(step))


@pytest.mark.parametrize(
    ("program", "used"),
    [
        (
            "claude",
            Usage(
                cost_usd=0.00024,
                model="claude-sonnet-4-6",
                input_tokens=20,
                output_tokens=10,
                cache_read_input_tokens=100,
            ),
        ),
        ("codex", Usage(model="gpt-5", input_tokens=20, output_tokens=10, cache_read_input_tokens=100)),
        ("gemini", Usage(model="m", input_tokens=20, output_tokens=10, cache_read_input_tokens=100)),
    ],
)
def test_a_transcript_gives_envelope_and_usage(
    program: str, used: Usage, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    replay(programs, program, transcript(program).read_text())
    meter = Meter(price_table())
    assert run(tmp_path, program, meter).output.summary == "Wrote it."
    assert meter.used == [used]
    arguments = (tmp_path / "arguments").read_text().split("\n")
    assert MODELS[program] in arguments
    stdin = (tmp_path / "stdin").read_text()
    assert json.loads(stdin[stdin.index('{"context"') :])["task"]["action"] == "execute"
    assert ("You are Quinn." in stdin) is (program != "claude")


@pytest.mark.parametrize(
    ("program", "what", "expected"),
    [
        ("claude", "401", StepFailed),
        ("claude", "429", Busy),
        ("codex", "401", StepFailed),
        ("codex", "429", AgentUnavailable),
    ],
)
def test_errors_of_real_transcripts_are_judged(program: str, what: str, expected: type[Exception]) -> None:
    said = KINDS[program].read(transcript(program, what).read_bytes(), "m")
    assert said.error
    with pytest.raises(expected) as raised:
        judge(said.error, said.status)
    if expected is StepFailed:
        assert raised.value.code == "spawn_failed"  # type: ignore[attr-defined]
    if expected is AgentUnavailable:
        until = raised.value.until  # type: ignore[attr-defined]
        assert datetime.fromtimestamp(until).strftime("%Y-%m-%d %H:%M") == "2030-03-17 17:46"


NOW = datetime(2026, 5, 6, 14, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Claude AI usage limit reached|1778080000", 1778080000 - NOW),
        ("You've hit your limit · resets 3pm (UTC)", 1800),
        ("You've hit your session limit · resets 2:15pm (UTC)", 86400 - 900),
        ("usage limit. Try again in 3 days 2 hours 5 minutes.", 3 * 86400 + 2 * 3600 + 300),
        ("Rate limit reached. Please try again in 20s.", 20),
        ("usage limit: resets May 8 at 9am (UTC)", 42.5 * 3600),
        ("usage limit: resets Feb 31 at 9am (UTC)", None),
        ("something else", None),
    ],
)
def test_the_end_of_a_usage_limit_is_read_from_words(words: str, seconds: float | None) -> None:
    found = reset_time(words, NOW)
    assert (None if found is None else found - NOW) == seconds


def test_a_busy_model_is_tried_again_under_the_lease(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    first = f"[ -e $HOME/tried ] || {{ touch $HOME/tried; cat {transcript('claude', '429')}; exit 1; }}"
    replay(programs, "claude", transcript("claude").read_text(), more=first)
    assert run(tmp_path, "claude").output.success
    (tmp_path / "tried").unlink()
    with pytest.raises(AgentUnavailable):
        run(tmp_path, "claude", patience_seconds=0.1)


def test_a_run_that_is_stopped_counts_what_it_used_so_far(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    begun = "".join(line for line in transcript("claude").read_text().splitlines(True) if '"type":"result"' not in line)
    replay(programs, "claude", begun, more=f"cat {programs}/claude.said; sleep 600")
    for seconds in GROWING_SECONDS:
        meter = Meter(price_table())
        with pytest.raises(StepFailed) as failed:
            run(tmp_path, "claude", meter, limits=Limits(seconds=seconds, grace_seconds=0.2))
        assert failed.value.code == "timed_out"
        # What was said at the very end of the limit may be said too late.
        if meter.cost_usd:
            break
    assert meter.cost_usd > 0


def test_what_a_model_may_do_follows_from_options() -> None:
    asked = Asked(
        model="m", directory=Path("/w"), prompt_file=Path("/p"), schema_file=Path("/s"), allowed=("make test",)
    )
    free = Asked(
        model="m", directory=Path("/w"), prompt_file=Path("/p"), schema_file=Path("/s"), sandboxed=True, left_usd=0.5
    )
    assert "Bash(make test *)" in ClaudeCode().command(asked)
    assert "acceptEdits" in ClaudeCode().command(asked)
    assert "bypassPermissions" in ClaudeCode().command(free)
    assert ClaudeCode().command(free)[-2:] == ["--max-budget-usd", "0.50"]
    assert "workspace-write" in Codex().command(asked)
    assert "--dangerously-bypass-approvals-and-sandbox" in Codex().command(free)
    assert "run_shell_command(make test)" in Gemini().command(asked)
    assert "yolo" in Gemini().command(free)


def test_a_program_that_is_not_there_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for kind in KINDS.values():
        with pytest.raises(ConfigRefused) as refused:
            HeadlessExecutor(kind, "m", Terms())
        assert refused.value.code == "program_missing"


def test_of_several_executors_the_first_that_is_there_does_the_work(programs: Path, stage: Scene) -> None:
    """`--executor claude-code,exec` on a machine without Claude Code, then with it."""
    exec_ = stage.script("agent.sh", f"echo '{json.dumps({**ENVELOPE, 'summary': 'By the script.'})}'")
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if which("claude", path=part) is None)
    options = ["--executor", "claude-code,exec", "--exec", exec_]
    runner = stage.run(*options, PATH=path)
    assert stage.ends(stage.task(), "completed").summary == "By the script."
    runner.stop()
    replay(programs, "claude", transcript("claude").read_text())
    stage.run(*options, HOME=str(stage.directory))
    assert stage.ends(stage.task(), "completed").summary == "Wrote it."


def test_coding_agents_need_no_card_no_queue_and_no_branch(programs: Path, stage: Scene) -> None:
    """`redkey run --claude-code --repo . --concurrency 4`: four tasks land on the branch that is checked out."""
    origin = make_repository(stage.directory / "shop")
    replay(programs, "claude", transcript("claude").read_text(), more="echo hi > $(basename $PWD).txt")
    command = ["--claude-code", "--repo", ".", "--concurrency", "4", "--memory", "off"]
    runner = stage.start(command, under=["env", "-C", str(origin)], HOME=str(stage.directory))
    stage.queue = "default"
    tasks = [stage.task(f"Write file {number}") for number in range(4)]
    for task_id in tasks:
        assert "branch: main" in stage.ends(task_id, "completed").notes
    assert len(list(origin.glob("*.txt"))) >= 4
    assert "lands on main without a check" in runner.log()
    # The model is the program's own choice.
    assert "--model" not in (stage.directory / "arguments").read_text()


# --- the real programs ---

CLIS = os.environ.get("REDKEY_TEST_CLIS", "")
real = pytest.mark.skipif(not CLIS, reason="the real command lines are opt-in: REDKEY_TEST_CLIS=DIR with node_modules")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A throw-away home, and the pinned programs first on the PATH."""
    made = tmp_path / "home"
    (made / ".gemini").mkdir(parents=True)
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (made / ".gemini" / "settings.json").write_text(json.dumps(settings))
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("PATH", f"{Path(CLIS) / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}")
    return made


def _writes(directory: Path) -> Any:
    """A model that writes a file by the tools of each program, then answers with the envelope."""
    path = str(directory / "hello.txt")
    calls = {"Write": {"file_path": path, "content": "hi\n"}, "exec_command": {"cmd": "echo hi > hello.txt"}}
    calls["write_file"] = {"file_path": path, "content": "hi\n"}

    def answer(number: int, request: dict[str, Any]) -> Reply:
        tools = [tool for tool in request.get("tools") or () if isinstance(tool, dict)]
        names = [tool.get("name") for tool in tools]
        names += [one["name"] for tool in tools for one in tool.get("functionDeclarations") or ()]
        known = next((name for name in calls if name in names), None)
        asked = json.dumps(request)
        if known and "hello.txt" not in asked:
            return Reply("Writing.", ((known, calls[known]),), cached_tokens=100)
        if "StructuredOutput" in names:
            return Reply("", (("StructuredOutput", ENVELOPE),))
        return Reply(json.dumps(ENVELOPE))

    return answer


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[ModelServer]:
    with model_server(lambda number, request: Reply("")) as server:
        for name, value in {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "test-key",
            "CODEX_API_KEY": "test-key",
            "GOOGLE_GEMINI_BASE_URL": server.url,
            "GEMINI_API_KEY": "test-key",
        }.items():
            monkeypatch.setenv(name, value)
        provider = f'{{name="loopback", base_url="{server.url}/v1", env_key="CODEX_API_KEY", wire_api="responses"}}'
        (home / ".codex").mkdir()
        config = f'model_provider = "loopback"\nmodel_providers.loopback = {provider}\n'
        (home / ".codex" / "config.toml").write_text(config)
        yield server


def _kept(log: Path, program: str, what: str, tmp_path: Path) -> None:
    """Write the transcript as a fixture, without names of this machine."""
    if os.environ.get("REDKEY_WRITE_TRANSCRIPTS") != "1":
        return
    text = (log / "stdout").read_text() or (log / "stderr").read_text()
    text = text.replace(str(tmp_path), "/place")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", text)
    kept = []
    for line in text.splitlines(True):
        # What a program tells of itself at its start is long and of no use here.
        if '"subtype":"init"' not in line:
            kept.append(line)
    transcript(program, what).write_text("".join(kept))


@real
@pytest.mark.parametrize("program", list(KINDS))
def test_the_real_program_works_on_a_model_server_of_the_loopback(
    program: str, served: ModelServer, tmp_path: Path
) -> None:
    directory, log = tmp_path / "work", tmp_path / "log"
    directory.mkdir()
    log.mkdir()
    served.answer = _writes(directory)
    meter = Meter(price_table())
    step = Step("You are Quinn.", step_input(assignment(), workflow="w"), directory, meter, log)
    limits = Limits(seconds=120)
    produced = asyncio.run(HeadlessExecutor(KINDS[program], MODELS[program], Terms(limits=limits)).run(step))
    _kept(log, program, "done", tmp_path)
    assert produced.output.summary == "Wrote it."
    assert (directory / "hello.txt").read_text() == "hi\n"
    assert sum(one.output_tokens for one in meter.used) == 10
    assert "You are Quinn." in json.dumps(served.requests[0])


@real
@pytest.mark.parametrize(
    ("program", "what"), [("codex", "401"), ("codex", "429"), ("claude", "429"), ("claude", "401")]
)
def test_the_real_program_says_how_it_failed(program: str, what: str, served: ModelServer, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.mkdir()
    problems = {
        "401": Problem(
            401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}
        ),
        "429": Problem(
            429,
            {"type": "error", "error": {"type": "usage_limit_reached", "message": "limit", "resets_at": 1900000000}},
            {"retry-after": "3600"},
        ),
    }
    served.answer = lambda number, request: problems[what]
    step = Step("You are Quinn.", step_input(assignment(), workflow="w"), tmp_path, Meter(), log)
    executor = HeadlessExecutor(
        KINDS[program], MODELS[program], Terms(limits=Limits(seconds=400), patience_seconds=0.1)
    )
    with pytest.raises(StepFailed) as failed:
        asyncio.run(executor.run(step))
    _kept(log, program, what, tmp_path)
    assert failed.value.code in ("spawn_failed", "usage_limit", "agent_unavailable")
