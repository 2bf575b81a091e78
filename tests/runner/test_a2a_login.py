"""How a runner shows a remote agent who it is, and a whole run with it against a live queue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import ConfigRefused, StepFailed
from redkey.runner.executors.a2a import A2aExecutor
from redkey.runner.executors.a2a_login import Login
from redkey.runner.executors.port import Produced
from tests.harness.scene import Scene
from tests.runner.remote_agent import Gate, as_data, beside, serving, step, words

pytest.importorskip("a2a")
pytest.importorskip("sse_starlette")

from a2a.server.agent_execution import RequestContext
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    Part,
)


def test_credentials_go_to_the_agents_own_origin_alone() -> None:
    import httpx

    login = Login.read("https://agent.example/a2a", ["X-Key: s3cret"], None, {})
    auth = login.auth(None)

    async def sent(url: str) -> dict[str, str]:
        request = httpx.Request("GET", url)
        await anext(auth.async_auth_flow(request))
        return dict(request.headers)

    assert asyncio.run(sent("https://agent.example/rpc"))["x-key"] == "s3cret"
    assert "x-key" not in asyncio.run(sent("https://elsewhere.example/rpc"))
    assert "x-key" not in asyncio.run(sent("http://agent.example/rpc"))
    for wrong in ("no colon", "X-Key: a\r\nb"):
        with pytest.raises(ConfigRefused):
            Login.read("https://agent.example", [wrong], None, {})
    with pytest.raises(ConfigRefused):
        Login.read("https://agent.example", [], "https://agent.example/token", {})


def login(url: str, secret: str) -> Login:
    return Login.read(url, [], f"{url}/token", {"A2A_CLIENT_ID": "quinn", "A2A_CLIENT_SECRET": secret})


def test_tokens_come_from_their_endpoint_and_are_replaced_when_they_end(tmp_path: Path) -> None:
    gate = Gate()

    async def scene() -> Produced:
        async with serving(as_data, gate=gate) as (url, _):
            return await A2aExecutor(url, login=login(url, "s3cret")).run(step(tmp_path))

    assert asyncio.run(scene()).output.summary == "From afar."
    # The card, the message and the task.
    assert gate.passed == 3


@pytest.mark.parametrize(
    ("secret", "answer", "words"),
    [
        ("wrong", None, "the token endpoint answers 401"),
        ("s3cret", {"token_type": "Bearer"}, "without a token"),
        ("s3cret", {"access_token": "a\nb"}, "without a token"),
    ],
)
def test_without_a_token_nothing_is_sent(
    secret: str, answer: dict[str, Any] | None, words: str, tmp_path: Path
) -> None:
    gate = Gate(answer)

    async def scene() -> None:
        async with serving(as_data, gate=gate) as (url, _):
            await A2aExecutor(url, login=login(url, secret)).run(step(tmp_path))

    with pytest.raises(StepFailed) as failed:
        asyncio.run(scene())
    assert (failed.value.code, words in str(failed.value), gate.passed) == ("spawn_failed", True, 0)


def test_a_whole_run_asks_and_goes_on_with_the_answer(stage: Scene) -> None:
    seen: list[tuple[str | None, str]] = []

    async def act(context: RequestContext, updater: TaskUpdater) -> None:
        said = context.message.parts[0].text if context.message is not None else ""
        seen.append((context.task_id, said))
        if len(seen) == 1:
            await updater.requires_input(words("Which audience?"))
        else:
            await updater.add_artifact([Part(text=f"For {said}.")], name="draft")
            await updater.complete(words("Written."))

    with beside(act, Gate()) as url:
        secrets = {"A2A_CLIENT_ID": "quinn", "A2A_CLIENT_SECRET": "s3cret"}
        runner = stage.run("--a2a", url, "--a2a-oauth", f"{url}/token", **secrets)
        task_id = stage.task("Write it")
        assert stage.ends(task_id, "blocked").blocker.reason == "Which audience?"
        stage.rk.tasks.unblock(task_id, "beginners")
        done = stage.ends(task_id, "completed")
        assert runner.stop() == 0
    assert (done.summary, [one.name for one in done.artifacts]) == ("Written.", ["draft.txt"])
    (first, _), (second, answer) = seen
    assert (first, answer) == (second, "beginners")
