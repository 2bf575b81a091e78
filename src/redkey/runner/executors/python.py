"""A Python callable as an agent, in a process of its own, so that it can be stopped with everything it started.

The callable is named `module:function`. What it gets and gives is told in `python_host`, the program that calls it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from redkey.errors import ConfigRefused
from redkey.runner.executors.command import CommandExecutor
from redkey.runner.executors.port import Produced, Step
from redkey.runner.process import Limits

HOST: Final = Path(__file__).with_name("python_host.py")


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
        # -P: neither the host's directory nor the working one may hold modules that are meant.
        host = [sys.executable, "-P", str(HOST), target, *path]
        self._command = CommandExecutor(host, pass_on=pass_on, limits=limits)

    async def run(self, step: Step) -> Produced:
        return await self._command.run(step)
