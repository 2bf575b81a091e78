"""A model behind an OpenAI-compatible server as an agent: tools, streams, usage, and what a busy server means."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redkey.client.problem import retry_after
from redkey.errors import AgentUnavailable, ConfigRefused, RedKeyError, StepFailed
from redkey.runner.cost import Meter, PriceTable, Rates, Usage
from redkey.runner.envelope import step_input
from redkey.runner.executors.openai import OpenAiExecutor, answers, check_url
from redkey.runner.executors.port import Produced, Step, Terms
from redkey.runner.process import Limits
from tests.harness.models import Answer, ModelServer, Problem, Reply, model_server
from tests.harness.samples import assignment
from tests.harness.scene import Runner, Scene

MODEL = "qwen3:8b"
PRICES = PriceTable({MODEL: Rates(1, 10, cache_read=0.1)})
ENVELOPE = {"success": True, "summary": "Read it.", "artifacts": [], "recommendation": "proceed"}


@pytest.fixture
def api() -> Iterator[ModelServer]:
    with model_server(lambda number, request: Reply(json.dumps(ENVELOPE))) as served:
        yield served


def run(api: ModelServer, directory: Path, meter: Meter | None = None, **options: Any) -> Produced:
    step = Step("You are Quinn.", step_input(assignment(), workflow="w"), directory, meter or Meter(PRICES))
    return asyncio.run(OpenAiExecutor(f"{api.url}/v1/", MODEL, Terms(**options)).run(step))


def test_the_prompt_is_the_system_and_usage_is_counted(
    api: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    meter = Meter(PRICES)
    api.answer = lambda number, request: Reply(json.dumps(ENVELOPE), cached_tokens=100)
    assert run(api, tmp_path, meter).output.summary == "Read it."
    (request,) = api.requests
    assert request["messages"][0] == {"role": "system", "content": "You are Quinn."}
    assert json.loads(request["messages"][1]["content"])["task"]["action"] == "execute"
    assert (request["model"], request["stream"]) == (MODEL, True)
    assert api.headers[0]["authorization"] == "Bearer test-key"
    assert meter.used == [Usage(model=MODEL, input_tokens=10, output_tokens=5, cache_read_input_tokens=100)]
    assert meter.cost_usd == round((10 * 1 + 5 * 10 + 100 * 0.1) / 1e6, 6)


def test_tools_write_edit_and_run_what_is_allowed(api: ModelServer, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    (root / "out").symlink_to(tmp_path)
    python = sys.executable
    tools = (
        ("write_file", {"path": "src/a.py", "content": "print('one')\n"}),
        ("edit_file", {"path": "src/a.py", "old": "one", "new": "two"}),
        ("run_command", {"command": f"{python} src/a.py"}),
        ("run_command", {"command": f"{python} src/a.py ; rm -rf src"}),
        ("run_command", {"command": "rm -rf src"}),
        ("edit_file", {"path": "src/a.py", "old": "three", "new": "four"}),
        ("write_file", {"path": "../x", "content": ""}),
        ("write_file", {"path": "out/secret", "content": "gone"}),
        ("write_file", {"path": ".git/hooks/x", "content": ""}),
        ("write_file", {"content": "no path"}),
    )
    api.answer = lambda number, request: Reply(tools=tools) if number == 1 else Reply(json.dumps(ENVELOPE))
    run(api, root, allowed=[f"{python} src/a.py"])
    results = [one["content"] for one in api.requests[1]["messages"] if one["role"] == "tool"]
    assert results[2] == "exit code 0\ntwo"
    # Words after an allowed beginning are arguments: no shell reads them.
    assert results[3] == "exit code 0\ntwo"
    assert "not allowed" in results[4]
    assert "occurs 0 times" in results[5]
    assert len(results) == len(tools)
    assert (root / "src" / "a.py").read_text() == "print('two')\n"
    assert (tmp_path / "secret").read_text() == "secret"
    assert not (root / ".git").exists()
    assert not (tmp_path / "x").exists()


def test_without_allowed_commands_there_is_no_tool_for_them(api: ModelServer, tmp_path: Path) -> None:
    run(api, tmp_path)
    assert "run_command" not in [tool["function"]["name"] for tool in api.requests[0]["tools"]]


def test_a_server_that_does_not_know_stream_options_is_asked_without(api: ModelServer, tmp_path: Path) -> None:
    def answer(number: int, request: dict[str, Any]) -> Reply | Problem:
        if "stream_options" in request:
            return Problem(400, {"error": {"message": "unknown field stream_options"}})
        return Reply(json.dumps(ENVELOPE))

    api.answer = answer
    assert run(api, tmp_path).output.success


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda number, _: Reply("I would rather not."), "envelope_invalid"),
        (lambda number, _: Problem(401), "spawn_failed"),
        (lambda number, _: Problem(404), "spawn_failed"),
        (lambda number, _: Problem(429, {"error": {"code": "insufficient_quota"}}), "spawn_failed"),
        (lambda number, _: Problem(400), "remote_failed"),
        (lambda number, _: Reply(tools=(("list_files", {}),)), "remote_failed"),
        (lambda number, _: Problem(503), "agent_unavailable"),
    ],
)
def test_every_way_not_to_answer_has_its_code(answer: Answer, code: str, api: ModelServer, tmp_path: Path) -> None:
    api.answer = answer
    with pytest.raises(RedKeyError) as failed:
        run(api, tmp_path, patience_seconds=0.2)
    assert failed.value.code == code


def test_a_model_that_loops_on_tools_ends_and_is_paid_for(api: ModelServer, tmp_path: Path) -> None:
    api.answer = lambda number, _: Reply(tools=(("list_files", {}),))
    meter = Meter(PRICES)
    with pytest.raises(StepFailed):
        run(api, tmp_path, meter)
    assert len(api.requests) == len(meter.used) == 100


def test_an_outage_shorter_than_the_lease_is_waited_out(api: ModelServer, tmp_path: Path) -> None:
    problems = [Problem(429, headers={"retry-after": "0"}), Problem(503), Problem(529 - 29)]
    api.answer = lambda number, _: problems[number - 1] if number <= 3 else Reply(json.dumps(ENVELOPE))
    assert run(api, tmp_path, patience_seconds=30).output.success
    assert len(api.requests) == 4


def test_a_limit_longer_than_the_lease_says_when_it_ends(api: ModelServer, tmp_path: Path) -> None:
    api.answer = lambda number, _: Problem(429, headers={"retry-after": "3600"})
    with pytest.raises(AgentUnavailable) as away:
        run(api, tmp_path, patience_seconds=30)
    assert away.value.until is not None
    assert 3590 < away.value.until - time.time() < 3610
    assert len(api.requests) == 1


def test_time_is_limited(api: ModelServer, tmp_path: Path) -> None:
    api.answer = lambda number, _: Problem(503)
    with pytest.raises(StepFailed) as failed:
        run(api, tmp_path, limits=Limits(seconds=0.3), patience_seconds=60)
    assert failed.value.code == "timed_out"


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "127.0.0.1:1", "http://u:p@h/v1", "http://h/v1?x=1"])
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigRefused):
        check_url(url)


def test_whether_a_server_is_there_can_be_asked(api: ModelServer) -> None:
    assert answers(f"{api.url}/v1")
    assert not answers("http://127.0.0.1:1/v1")


@pytest.mark.parametrize(("said", "seconds"), [("3", 3), ("0.5", 0.5), ("x", None), ("", None), (None, None)])
def test_retry_after_is_read(said: str | None, seconds: float | None) -> None:
    assert retry_after(said) == seconds


def test_a_limit_of_the_account_gives_the_task_back_and_pauses_every_runner(api: ModelServer, stage: Scene) -> None:
    """The account is limited for some seconds: no attempt is used, another runner waits too, then it is done."""
    calls: list[float] = []

    def answer(number: int, request: dict[str, Any]) -> Reply | Problem:
        calls.append(time.time())
        if calls[-1] < calls[0] + 6:
            return Problem(429, {"error": {"message": "usage limit"}}, {"retry-after": "6"})
        return Reply(json.dumps(ENVELOPE))

    api.answer = answer
    shared = ["--openai", f"{api.url}/v1", "--work", str(stage.directory / "w"), "--lease", "5"]
    runners = [stage.run(*shared, card=name) for name in ("ada", "bob")]
    task_id = stage.task()
    task = stage.ends(task_id, "completed")
    assert task.attempt == 1
    told = [one for runner in runners for one in runner.told()]
    assert "paused" in [one["event"] for one in told]
    # It was shown at the server, and is over now.
    agents = [next(iter(stage.rk.agents.list(slug=f"{name}{stage.suffix}"))) for name in ("ada", "bob")]
    beats = [one.data.get("pause") for agent in agents for one in stage.rk.agents.events(agent.agent_id)]
    assert "usage_limit" in beats
    # One call met the limit. Nobody asked again before it ended.
    assert len([at for at in calls if at < calls[0] + 5.5]) == 1


def test_a_limit_of_the_account_reaches_runners_in_other_directories_and_on_other_machines(
    api: ModelServer, stage: Scene
) -> None:
    """Two runners have only the key in common; one of another account does the task that both must leave."""
    limited = Problem(429, {"error": {"message": "usage limit"}}, {"retry-after": "3600"})
    keys: list[str] = []

    def answer(number: int, request: dict[str, Any]) -> Reply | Problem:
        keys.append(api.headers[-1]["authorization"])
        return limited if keys[-1] == "Bearer one" else Reply(json.dumps(ENVELOPE))

    api.answer = answer

    def begin(name: str, key: str) -> Runner:
        home = stage.directory / f"home-{name}"
        home.mkdir()
        more = {"HOME": str(home), "OPENAI_API_KEY": key}
        return stage.run("--openai", f"{api.url}/v1", "--lease", "5", "--role", role, card=name, **more)

    # Agents of other tests are on the same server: they may not have the task.
    role = f"limited{stage.suffix}"
    first, second = begin("ada", "one"), begin("bob", "one")
    task_id = stage.task(required_roles=[role])
    for runner in (first, second):
        stage.until_told(runner, "paused")
    ada, bob = [next(iter(stage.rk.agents.list(slug=f"{name}{stage.suffix}"))) for name in ("ada", "bob")]
    assert (ada.account, ada.pause, ada.paused_until) == (bob.account, bob.pause, bob.paused_until)
    assert (ada.pause, ada.account.startswith("openai-"), "one" in ada.account) == ("usage_limit", True, False)
    (reason,) = stage.rk.tasks.explain(task_id).reasons
    assert (reason.code, "(usage limit)" in reason.message) == ("agents_paused", True)
    # One that is started anew elsewhere knows it at once.
    second.stop()
    third = begin("eve", "one")
    stage.until_told(third, "paused")
    assert keys == ["Bearer one"]
    begin("zoe", "two")
    assert stage.ends(task_id, "completed").attempt == 1
    assert keys == ["Bearer one", "Bearer two"]
