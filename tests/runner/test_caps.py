"""Cost caps: the call that reaches one is the last, with one task or many, one runner or two; finished work stays."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import AgentUnavailable, StepFailed
from redkey.runner.cost import Meter, PriceTable, Rates, Usage
from redkey.runner.permits import Permits
from redkey.runner.spending import Caps, Spending
from tests.harness.models import ModelServer, Problem, Reply, model_server
from tests.harness.samples import brief_asking
from tests.harness.scene import Runner, Scene, output

MODEL = "qwen3:8b"
PRICES = PriceTable({"m": Rates(input=1, output=10)})
DONE = Reply(output(), input_tokens=1_000_000, output_tokens=0)
MORE = Reply(tools=(("list_files", {}),), input_tokens=1_000_000, output_tokens=0)


@pytest.fixture
def api() -> Iterator[ModelServer]:
    """A model whose calls cost a dollar each."""
    with model_server(lambda number, request: DONE) as model:
        yield model


def start(stage: Scene, api: ModelServer, name: str, *more: str, work: str = "w") -> Runner:
    prices = stage.directory / "prices.json"
    prices.write_text(json.dumps({"models": {MODEL: {"input": 1, "output": 1}}}))
    slug = name + stage.suffix
    identity = {"slug": slug, "name": name, "department": "dev", "reports_to": "human", "model": MODEL}
    card = str(stage.card(name, identity=identity))
    options = ["--card", card, "--queue", stage.queue, "--work", str(stage.directory / work), "--memory", "off"]
    return stage.start([*options, "--openai", f"{api.url}/v1", "--prices", str(prices), *more])


def call(meter: Meter, *used: Usage) -> None:
    """One model call, as an executor makes it."""

    async def run() -> None:
        async with meter.permit():
            meter.add(*used)

    asyncio.run(run())


def test_costs_add_up_over_attempts_and_restarts_until_a_cap(tmp_path: Path) -> None:
    used = Usage(model="m", output_tokens=30_000)
    spending = Spending(tmp_path / "c.sqlite", "ada", PRICES, Caps(task=1.0, workflow=1.5))
    call(spending.meter("t1", "w"), used)
    call(spending.meter("t1", "w"), used)
    spending.close()
    spending = Spending(tmp_path / "c.sqlite", "ada", PRICES, Caps(task=1.0, workflow=1.5))
    meter = spending.meter("t1", "w")
    assert meter.left_usd == pytest.approx(0.4)
    call(meter, used, used)
    assert meter.cost_usd == 0.6
    with pytest.raises(StepFailed, match="one task") as failed:
        call(meter, used)
    assert failed.value.code == "cost_cap"
    call(spending.meter("t2", "w"), used)
    with pytest.raises(StepFailed, match="one workflow"):
        call(spending.meter("t4", "w"), used)
    call(spending.meter("t3"), used)
    spending.close()


def test_a_cap_of_a_day_pauses_until_tomorrow_and_one_of_the_agent_for_good(tmp_path: Path) -> None:
    spending = Spending(tmp_path / "c.sqlite", "ada", PRICES, Caps(day=0.5))
    spending.check()
    call(spending.meter("t"), Usage(cost_usd=0.5))
    with pytest.raises(AgentUnavailable) as away:
        spending.check()
    assert away.value.until is not None
    assert 0 < away.value.until - time.time() <= 86400
    spending.close()
    other = Spending(tmp_path / "c.sqlite", "bob", PRICES, Caps(agent=0.5))
    other.check()
    call(other.meter("t"), Usage(cost_usd=0.6))
    with pytest.raises(AgentUnavailable) as away:
        call(other.meter("t"), Usage(cost_usd=0.6))
    assert away.value.until == float("inf")
    other.close()


def test_calls_run_side_by_side_far_from_a_cap_and_one_by_one_near_it(tmp_path: Path) -> None:
    """Each call costs 10 cents, so one that runs may cost 20: the first runs alone, then up to four, then one."""
    spending = Spending(tmp_path / "c.sqlite", "ada", PRICES, Caps(agent=1.0))
    running, together = 0, list[int]()

    async def one(number: int, everyone: asyncio.Barrier) -> None:
        nonlocal running
        meter = spending.meter(f"t{number}")
        await everyone.wait()
        async with meter.permit():
            running += 1
            together.append(running)
            # The others get the time that they need to begin too, if they may.
            await asyncio.sleep(0.5)
            meter.add(Usage(cost_usd=0.1))
            running -= 1

    async def all_of_them() -> list[BaseException | None]:
        everyone = asyncio.Barrier(12)
        return await asyncio.gather(*(one(number, everyone) for number in range(12)), return_exceptions=True)

    ended = asyncio.run(all_of_them())
    assert together[0] == 1
    assert max(together) > 1
    assert together[-1] == 1
    assert len(together) == 10
    assert sum(isinstance(error, AgentUnavailable) for error in ended) == 2
    assert spending.meter("t").left_usd == pytest.approx(0)
    spending.close()


def test_a_call_of_a_killed_runner_is_not_counted(tmp_path: Path) -> None:
    script = f"""
import asyncio, sys
from pathlib import Path
from redkey.runner.permits import Permits
async def hold():
    async with Permits(Path({str(tmp_path)!r})).one(lambda others: True):
        print("holds", flush=True)
        await asyncio.Event().wait()
asyncio.run(hold())
"""
    other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert other.stdout is not None
    try:
        assert other.stdout.readline() == b"holds\n"
        counted: list[int] = []

        def count(others: int) -> bool:
            counted.append(others)
            return True

        async def ask() -> None:
            async with Permits(tmp_path).one(count):
                return

        asyncio.run(ask())
        other.send_signal(signal.SIGKILL)
        other.wait(60)
        asyncio.run(ask())
        assert counted == [1, 0]
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    finally:
        other.kill()
        other.wait()
        other.stdout.close()


def test_a_cap_is_passed_by_at_most_one_call(api: ModelServer, stage: Scene) -> None:
    """Each call costs a dollar; the cap of 2.50 is reached by the third, and there is no fourth."""
    api.answer = lambda number, _: MORE
    runner = start(stage, api, "ada", "--max-cost", "2.5")
    task = stage.ends(stage.task(), "blocked")
    assert task.blocker.blocker_type == "resource"
    assert "cost cap of $2.50" in task.blocker.reason
    assert len(api.requests) == 3
    assert [one["cost_usd"] for one in runner.told() if one["event"] == "blocked"] == [3.0]


def test_the_call_that_reaches_a_cap_completes_its_task(api: ModelServer, stage: Scene) -> None:
    """The third call passes the cap of 2.50 with the envelope: that work is paid for."""
    api.answer = lambda number, _: DONE if number == 3 else MORE
    runner = start(stage, api, "ada", "--max-cost", "2.5", "--max-cost", "agent=2.5")
    task = stage.ends(stage.task(), "completed")
    assert task.cost_usd == 3.0
    after = stage.task()
    stage.until_told(runner, "paused")
    stage.wait(lambda: stage.state(after) == "available", 60, after)
    assert len(api.requests) == 3


def both_in_flight(api: ModelServer) -> None:
    """Hold each answer until another call is in flight too, or for a while: calls that may overlap do."""
    seen = threading.Condition()
    running = 0

    def answer(number: int, _: dict[str, Any]) -> Reply | Problem:
        nonlocal running
        with seen:
            running += 1
            seen.notify_all()
            seen.wait_for(lambda: running > 1, 0.5)
            seen.wait(0.2)
            running -= 1
        return DONE

    api.answer = answer


def test_a_cap_of_the_day_is_passed_by_at_most_one_call_of_four_tasks_at_once(api: ModelServer, stage: Scene) -> None:
    both_in_flight(api)
    tasks = [stage.task() for _ in range(4)]
    runner = start(stage, api, "ada", "--max-cost", "day=2.5", "--concurrency", "4")
    stage.until_told(runner, "paused")
    stage.wait(lambda: [stage.state(one) for one in tasks].count("completed") == 3, 60, *tasks)
    assert len(api.requests) == 3
    stage.wait(lambda: [stage.state(one) for one in tasks].count("available") == 1, 60, *tasks)


def test_a_cap_of_the_workspace_is_passed_by_at_most_one_call_of_two_runners(api: ModelServer, stage: Scene) -> None:
    """The runners of one agent have directories of their own, as on two machines: only the server knows of both."""
    (workspace,) = [one.workspace_id for one in stage.rk.workspaces.list()]
    both_in_flight(api)
    stage.rk.workspaces.set_policy(workspace, cost_caps={"agent": 2.5})
    try:
        for work in ("here", "there"):
            start(stage, api, "ada", "--concurrency", "2", work=work)
        tasks = [stage.task() for _ in range(4)]
        stage.wait(lambda: sorted(map(stage.state, tasks)) == ["available", *["completed"] * 3], 120, *tasks)
        assert len(api.requests) == 3
    finally:
        stage.rk.workspaces.set_policy(workspace, cost_caps={"agent": None})


def test_a_cap_of_the_workspace_on_a_task_counts_its_failed_attempts(api: ModelServer, stage: Scene) -> None:
    """The runner has no cap of its own: the server tells after each call what is left."""
    (workspace,) = [one.workspace_id for one in stage.rk.workspaces.list()]
    api.answer = lambda number, _: MORE
    stage.rk.workspaces.set_policy(workspace, cost_caps={"task": 2.5})
    try:
        start(stage, api, "eve")
        task_id = stage.task()
        task = stage.ends(task_id, "blocked")
        assert (task.blocker.blocker_type, task.cost_usd) == ("resource", 3.0)
        assert "workspace's cost cap for one task is reached" in task.blocker.reason
        assert len(api.requests) == 3
        # With no room left it is blocked again before any call.
        stage.rk.tasks.unblock(task_id, "go on")
        stage.wait(lambda: stage.types(task_id).count("task.blocked") == 2, 60, task_id)
        assert len(api.requests) == 3
        # With more room it goes on, and what it spent before counts.
        stage.rk.workspaces.set_policy(workspace, cost_caps={"task": 5})
        api.answer = lambda number, _: Reply(output(), input_tokens=500_000, output_tokens=0)
        stage.rk.tasks.unblock(task_id, "go on")
        assert stage.ends(task_id, "completed").cost_usd == 3.5
    finally:
        stage.rk.workspaces.set_policy(workspace, cost_caps={"task": None})
    by_task = {one.task_id: one.cost_usd for one in stage.rk.usage.get(by="task").items}
    assert by_task[task_id] == 3.5
    (agent,) = stage.rk.agents.list(slug=f"eve{stage.suffix}")
    by_agent = {one.agent_id: (one.cost_usd, one.input_tokens) for one in stage.rk.usage.get(by="agent").items}
    assert by_agent[agent.agent_id] == (3.5, 3_500_000)


def test_finished_work_is_kept_when_nothing_is_left_to_evaluate_it(api: ModelServer, stage: Scene) -> None:
    brief = brief_asking(type="message", evaluate="Is it good?")
    start(stage, api, "ada", "--max-cost", "1", "--evaluator", "true")
    task = stage.ends(stage.task(brief=brief), "blocked")
    assert task.blocker.blocker_type == "resource"
    assert "nothing is left for its evaluation" in task.blocker.reason
    assert len(api.requests) == 1


def test_a_model_without_a_price_warns_and_completes_with_its_tokens(api: ModelServer, stage: Scene) -> None:
    card = str(stage.card("ada"))
    work = str(stage.directory / "w")
    runner = stage.start(["--card", card, "--queue", stage.queue, "--work", work, "--openai", f"{api.url}/v1"])
    task = stage.ends(stage.task(), "completed")
    assert task.cost_usd == 0
    assert "there is no price for 'm'" in runner.log()
    by_model = {one.model: (one.cost_usd, one.input_tokens) for one in stage.rk.usage.get(by="model").items}
    assert by_model["m"] == (0, 1_000_000)
