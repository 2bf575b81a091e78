"""Talk to a model until it returns its envelope: the part that all model servers share.

`anthropic` and `openai` translate one turn each way; the loop, the tools, the limits and the counting are here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from redkey.errors import StepFailed
from redkey.runner.cost import Usage
from redkey.runner.envelope import input_bytes, read_output
from redkey.runner.executors.port import Produced, Step
from redkey.runner.executors.tools import Tools
from redkey.runner.process import Limits

TURNS: Final = 100
_TRANSCRIPT: Final = "transcript.jsonl"


class Call(msgspec.Struct, frozen=True):
    """A tool that the model wants to use."""

    id: str
    name: str
    given: Any


class Turn(msgspec.Struct, frozen=True):
    """One turn of the model; `raw` is its message as the next request repeats it."""

    text: str
    calls: tuple[Call, ...]
    used: Usage
    stopped: str
    raw: Any
    # True if the model paused by itself and continues when it is called again.
    paused: bool = False


class Answered(msgspec.Struct, frozen=True):
    """The result of a tool call."""

    call: Call
    text: str
    is_error: bool


class Model(Protocol):
    """One kind of model server."""

    def first(self, text: str) -> Any:
        """Return the first message."""
        ...

    async def ask(self, system: str, said: Sequence[Any], tools: Sequence[dict[str, Any]]) -> Turn:
        """Request one turn; AgentUnavailable or StepFailed if there is none."""
        ...

    def results(self, answered: Sequence[Answered]) -> list[Any]:
        """Return the messages that carry the results of tools."""
        ...


async def converse(model: Model, step: Step, tools: Tools, limits: Limits) -> Produced:
    """Talk to a model until it returns its envelope; StepFailed if it does not."""
    try:
        async with asyncio.timeout(limits.seconds) as limit:
            return await _converse(model, step, tools, limit)
    except TimeoutError as cause:
        raise StepFailed(f"the model was stopped after {limits.seconds:g} seconds", code="timed_out") from cause


async def _converse(model: Model, step: Step, tools: Tools, limit: asyncio.Timeout) -> Produced:
    said: list[Any] = [model.first(input_bytes(step.given).decode())]
    _keep(step, {"role": "user", "text": input_bytes(step.given).decode()})
    for _ in range(TURNS):
        waits_from, deadline = asyncio.get_running_loop().time(), limit.when() or 0.0
        limit.reschedule(None)
        async with step.meter.permit():
            # Time spent waiting for other calls is not the model's.
            limit.reschedule(deadline + asyncio.get_running_loop().time() - waits_from)
            turn = await model.ask(step.prompt, said, tools.described)
            step.meter.add(turn.used)
        _keep(step, {"role": "assistant", "text": turn.text, "calls": turn.calls, "used": turn.used})
        if not turn.calls and not turn.paused:
            return Produced(_output(turn), tuple(tools.mail))
        said.append(turn.raw)
        if turn.calls:
            answered = [Answered(call, *await tools.answer(call.name, call.given)) for call in turn.calls]
            _keep(step, {"role": "tool", "answered": answered})
            said += model.results(answered)
    raise StepFailed(f"the model used tools {TURNS} times without an answer", code="remote_failed")


def _output(turn: Turn) -> Any:
    """Read the envelope in a reply; the error for a missing one says why the model stopped."""
    try:
        return read_output(turn.text.encode())
    except StepFailed as failed:
        raise StepFailed(f"{failed.message} (the model stopped for {turn.stopped})", code=failed.code) from failed


def _keep(step: Step, said: dict[str, Any]) -> None:
    if step.log is not None:
        with (step.log / _TRANSCRIPT).open("ab") as out:
            out.write(msgspec.json.encode(said) + b"\n")
