"""The model of an agent: a callable, plain or asynchronous, or a command that reads JSON and prints text."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec

from redkey.bus.runtime.owner import ModelPrompt
from redkey.errors import BusRefused

Model = Callable[[ModelPrompt], str | Awaitable[str]]
_OUTPUT_LIMIT = 1024 * 1024
_SHOWN = 500


async def ask(model: Model, prompt: ModelPrompt) -> str:
    """Ask a model."""
    output = model(prompt)
    return await output if inspect.isawaitable(output) else output


class CommandModel:
    """A command that reads the prompt as one JSON object and prints the output."""

    def __init__(self, command: Sequence[str], *, seconds: float = 300.0) -> None:
        if not command:
            raise BusRefused("the command of a model must name a program", code="model_failed")
        self._command, self._seconds = list(command), seconds

    async def __call__(self, prompt: ModelPrompt) -> str:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as cause:
            raise BusRefused(f"{self._command[0]} cannot be run: {cause.strerror}", code="model_failed") from cause
        try:
            async with asyncio.timeout(self._seconds):
                output, errors = await process.communicate(msgspec.json.encode(prompt))
        except TimeoutError:
            message = f"{self._command[0]} did not answer within {self._seconds:g} seconds"
            raise BusRefused(message, code="model_failed") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode != 0:
            stderr = errors.decode(errors="replace").strip()[-_SHOWN:]
            raise BusRefused(f"{self._command[0]} ended with {process.returncode}: {stderr}", code="model_failed")
        if len(output) > _OUTPUT_LIMIT:
            raise BusRefused(f"{self._command[0]} printed more than {_OUTPUT_LIMIT:,} bytes", code="model_failed")
        return output.decode(errors="replace").strip()
