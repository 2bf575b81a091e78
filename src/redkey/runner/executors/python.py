"""A Python callable as an agent, in a process of its own, so that it can be stopped with everything it started.

The callable is named `module:function` and is called with the step's input, the prompt and an `Outbox`; it returns the
output envelope as a dict. It may be a coroutine function. What it prints goes to standard error.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from redkey.errors import ConfigRefused
from redkey.runner.executors.command import CommandExecutor
from redkey.runner.executors.port import Produced, Step
from redkey.runner.process import Limits


class PythonExecutor:
    """Calls a function for each step. `path` are directories where its module is looked for."""

    def __init__(
        self,
        target: str,
        *,
        path: Sequence[str] = (),
        pass_on: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        module, _, function = target.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), function)):
            raise ConfigRefused(f"{target[:100]!r} names no function; write module:function")
        # -P: the working directory may hold modules of any name, and none of them is meant.
        host = [sys.executable, "-P", "-m", "redkey.runner.executors.python_host", target, *path]
        self._command = CommandExecutor(host, pass_on=pass_on, limits=limits)

    async def run(self, step: Step) -> Produced:
        return await self._command.run(step)


def load(target: str) -> Callable[..., Any]:
    """The function with a name; ConfigRefused when it is not there."""
    module, _, function = target.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as cause:
        raise ConfigRefused(f"{target!r} cannot be loaded: {cause}", code="callable_missing") from cause
    if not callable(found):
        raise ConfigRefused(f"{target!r} is not callable", code="callable_missing")
    return found  # type: ignore[no-any-return]


def takes_outbox(function: Callable[..., Any]) -> bool:
    """Whether a function wants a third argument."""
    return len(inspect.signature(function).parameters) > 2
