"""A remote agent, by the official client against the official SDK's own server: stream, poll, cancel."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import ConfigRefused, RedKeyError, StepFailed
from redkey.runner.executors.a2a import A2aExecutor
from redkey.runner.executors.port import Produced
from redkey.runner.process import Limits
from tests.runner.processes import GROWING_SECONDS, PATIENCE_SECONDS
from tests.runner.remote_agent import ENVELOPE, Act, Remote, as_data, data, serving, step, words

pytest.importorskip("a2a")
pytest.importorskip("sse_starlette")

from a2a.server.agent_execution import RequestContext
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    Part,
    TaskState,
)


def run(directory: Path, act: Act, *, streaming: bool = True, **options: Any) -> tuple[Produced, Remote]:
    async def scene() -> tuple[Produced, Remote]:
        async with serving(act, streaming=streaming) as (url, remote):
            return await A2aExecutor(url, poll_seconds=0.05, **options).run(step(directory)), remote

    return asyncio.run(scene())


async def _as_text(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.add_artifact([Part(text="Here:\n```json\n" + json.dumps(ENVELOPE) + "\n```")])
    await updater.complete()


async def _as_status(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.complete(words(json.dumps(ENVELOPE)))


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("act", [as_data, _as_text, _as_status])
def test_the_envelope_comes_back_however_the_agent_tells_it(act: Act, streaming: bool, tmp_path: Path) -> None:
    produced, remote = run(tmp_path, act, streaming=streaming)
    assert produced.output.summary == "From afar."
    text, given = remote.given[0]
    assert text["text"] == "You are Quinn."
    assert given["data"]["context"]["workflow"] == "w"


def test_an_agent_that_needs_something_is_blocked_in_its_own_words(tmp_path: Path) -> None:
    async def act(context: RequestContext, updater: TaskUpdater) -> None:
        await updater.requires_input(words("Which audience?"))

    produced, remote = run(tmp_path, act)
    assert (produced.output.recommendation, produced.output.summary) == ("escalate", "Which audience?")
    assert produced.output.notes == ("blocker_type: ambiguity",)
    # It waits for the answer.
    assert not remote.cancelled.is_set()


def test_the_answer_continues_the_same_remote_task(tmp_path: Path) -> None:
    seen: list[tuple[str | None, str | None, str]] = []

    async def act(context: RequestContext, updater: TaskUpdater) -> None:
        said = context.message.parts[0].text if context.message is not None else ""
        seen.append((context.task_id, context.context_id, said))
        if len(seen) == 1:
            await updater.requires_input(words("Which audience?"))
        else:
            await updater.add_artifact([Part(text=f"For {said}.")], name="draft")
            await updater.complete(words("Written."))

    async def scene() -> tuple[Produced, Produced]:
        async with serving(act) as (url, _):
            executor = A2aExecutor(url, poll_seconds=0.05, kept=tmp_path / "kept")
            asked = await executor.run(step(tmp_path, reference_task_ids=("task_1",)))
            return asked, await executor.run(step(tmp_path, answer="beginners"))

    asked, done = asyncio.run(scene())
    assert asked.output.recommendation == "escalate"
    (first, context, prompt), (second, again, answer) = seen
    assert (first, context) == (second, again)
    assert (prompt, answer) == ("You are Quinn.", "beginners")
    assert (done.output.summary, [one.content for one in done.output.artifacts]) == ("Written.", ["For beginners."])
    (kept,) = (tmp_path / "kept").iterdir()
    assert json.loads(kept.read_bytes())["waits"] is False


def test_artifacts_of_any_agent_become_files_and_its_words_progress(tmp_path: Path) -> None:
    said: list[str] = []

    async def say(text: str) -> None:
        said.append(text)

    async def act(context: RequestContext, updater: TaskUpdater) -> None:
        assert context.message is not None
        # It never heard of this task.
        assert list(context.message.reference_task_ids) == []
        await updater.update_status(TaskState.TASK_STATE_WORKING, words("Half of it is done."))
        await updater.add_artifact([Part(text="# Fine", media_type="text/markdown")], name="report")
        await updater.add_artifact([data({"score": 3})], name="scores")
        await updater.add_artifact([Part(raw=b"\x89PNG", media_type="image/png")], name="../picture")
        await updater.add_artifact([Part(url="https://example.org/big.iso")], name="big")
        await updater.complete(words("All done."))

    async def scene() -> Produced:
        async with serving(act) as (url, _):
            return await A2aExecutor(url).run(step(tmp_path, say=say, reference_task_ids=("task_1",)))

    output = asyncio.run(scene()).output
    assert (output.success, output.summary, output.recommendation) == (True, "All done.", "proceed")
    found = {one.path: one.content for one in output.artifacts}
    assert found.pop("scores.json").split() == ["{", '"score":', "3", "}"]
    assert found == {"report.md": "# Fine", "big.url": "https://example.org/big.iso\n"}
    assert (tmp_path / "picture.png").read_bytes() == b"\x89PNG"
    assert said == ["Half of it is done."]


def test_only_tasks_of_the_agent_itself_are_referred_to_and_as_it_named_them(tmp_path: Path) -> None:
    seen: list[tuple[str | None, str, list[str]]] = []

    async def act(context: RequestContext, updater: TaskUpdater) -> None:
        assert context.message is not None
        seen.append((context.task_id, context.message.context_id, list(context.message.reference_task_ids)))
        await updater.complete(words("Done."))

    async def scene() -> None:
        async with serving(act) as (url, _), serving(act) as (other, _):
            agent = A2aExecutor(url, kept=tmp_path / "kept")
            await agent.run(step(tmp_path, task_id="task_a", context_id="workflow:wf_1"))
            references = ("task_a", "task_b")
            await agent.run(step(tmp_path, task_id="task_c", context_id="queue:q", reference_task_ids=references))
            # Another agent gave no names, and a runner that remembers nothing knows none.
            for executor in (A2aExecutor(other, kept=tmp_path / "kept"), A2aExecutor(url)):
                await executor.run(step(tmp_path, task_id="task_d", reference_task_ids=references))

    asyncio.run(scene())
    first = seen[0][0]
    assert [one[2] for one in seen] == [[], [first], [], []]
    assert [one[1] for one in seen[:2]] == ["wf_1", "task_c"]


async def _fails(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.failed(words("out of paper"))


async def _rejects(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.reject(words("not my job"))


async def _half_an_envelope(context: RequestContext, updater: TaskUpdater) -> None:
    await updater.add_artifact([data({**ENVELOPE, "recommendation": "perhaps"})])
    await updater.complete()


@pytest.mark.parametrize(
    ("act", "code"),
    [(_fails, "remote_failed"), (_rejects, "remote_rejected"), (_half_an_envelope, "envelope_invalid")],
)
def test_every_wrong_end_has_its_code(act: Act, code: str, tmp_path: Path) -> None:
    with pytest.raises(RedKeyError) as failed:
        run(tmp_path, act)
    assert failed.value.code == code


async def _hangs(context: RequestContext, updater: TaskUpdater) -> None:
    await asyncio.sleep(600)


@pytest.mark.parametrize("streaming", [True, False])
def test_a_lost_lease_cancels_the_remote_task(
    streaming: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "redkey.runner")

    async def scene() -> None:
        async with serving(_hangs, streaming=streaming) as (url, remote):
            running = asyncio.create_task(A2aExecutor(url, poll_seconds=0.05).run(step(tmp_path)))
            await asyncio.wait_for(remote.begun.wait(), PATIENCE_SECONDS)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while "calls its task" not in caplog.text:
                    await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await asyncio.wait_for(remote.cancelled.wait(), PATIENCE_SECONDS)

    asyncio.run(scene())


def test_time_is_limited_and_the_remote_task_cancelled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "redkey.runner")

    async def scene() -> None:
        async with serving(_hangs) as (url, remote):
            for seconds in GROWING_SECONDS:
                with pytest.raises(StepFailed) as failed:
                    await A2aExecutor(url, limits=Limits(seconds=seconds)).run(step(tmp_path))
                assert failed.value.code == "timed_out"
                # Only a task whose name has come can be cancelled.
                if "calls its task" in caplog.text:
                    break
            await asyncio.wait_for(remote.cancelled.wait(), PATIENCE_SECONDS)

    asyncio.run(scene())


def test_an_agent_that_is_not_there_cannot_be_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(StepFailed) as failed:
        asyncio.run(A2aExecutor(url).run(step(tmp_path)))
    assert failed.value.code == "spawn_failed"
    with pytest.raises(ConfigRefused):
        A2aExecutor("ftp://x")
