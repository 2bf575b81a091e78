"""A Python callable as an agent, in its own process, so it can be stopped together with everything it started.

The callable is named `module:function`. `python_host`, the program that calls it, documents arguments and result.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from redkey.errors import ConfigRefused
from redkey.runner.executors.command import CommandExecutor, environment
from redkey.runner.executors.port import Produced, Step, Terms

HOST: Final = Path(__file__).with_name("python_host.py")
# If set, the host only imports the function. The host repeats this name: it does not import this module.
CHECK_VARIABLE: Final = "REDKEY_CHECK_ONLY"
_CHECK_SECONDS: Final = 120.0


class PythonExecutor:
    """Calls a function for each step. `path` are directories in which its module is searched."""

    def __init__(self, target: str, terms: Terms, *, path: Sequence[str] = ()) -> None:
        module, _, function = target.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), function)):
            raise ConfigRefused(f"{target[:100]!r} does not name a function; write module:function")
        # -P: do not import modules from the host's directory or the working directory.
        host = [sys.executable, "-P", str(HOST), target, *path]
        _check(host, target, terms.pass_on)
        self._command = CommandExecutor(host, terms)

    async def run(self, step: Step) -> Produced:
        return await self._command.run(step)


def _check(host: Sequence[str], target: str, pass_on: Sequence[str]) -> None:
    """Import the function once, in a process like those of the steps; ConfigRefused if that fails."""
    try:
        with tempfile.TemporaryDirectory(prefix="redkey-check-") as scratch:
            asked = subprocess.run(  # noqa: S603
                host,
                cwd=scratch,
                env={**environment(pass_on), CHECK_VARIABLE: "1"},
                capture_output=True,
                check=False,
                timeout=_CHECK_SECONDS,
            )
    except subprocess.TimeoutExpired as cause:
        text = f"{target} was not imported within {_CHECK_SECONDS:g} seconds"
        raise ConfigRefused(text, code="function_missing") from cause
    if asked.returncode:
        said = asked.stderr.decode("utf-8", "replace").strip().splitlines()
        text = f"{target} cannot be called: {said[-1] if said else 'it said nothing'}"
        raise ConfigRefused(text, code="function_missing")
