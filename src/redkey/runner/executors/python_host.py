"""The process of a Python callable: read the step from files, call the function, write the envelope.

    python -P python_host.py MODULE:FUNCTION [DIRECTORY...]

The callable gets the input envelope as a dict, the prompt, and an `Outbox` if it takes a third argument. It returns the
output envelope as a dict, and may be a coroutine function. Its prints go to standard error.

This file runs without importing RedKey, because a process starts for every step.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Outbox:
    """Collects messages and usage of a callable; both are sent after it has finished."""

    def __init__(self, messages: Path, usage: Path) -> None:
        self._messages, self._usage = messages, usage

    def send(self, to_agent: str, subject: str, body: str = "", **more: Any) -> None:
        """Send a message to an agent, a role or the humans."""
        _append(self._messages, {"to_agent": to_agent, "subject": subject, "body": body, **more})

    def used(self, **usage: Any) -> None:
        """Report usage: `cost_usd`, or `model` with `input_tokens` and `output_tokens`."""
        _append(self._usage, usage)


def _append(path: Path, value: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(value) + "\n")


def _load(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise TypeError(f"{target} is not callable")
    return function  # type: ignore[no-any-return]


def _call(function: Callable[..., Any]) -> Any:
    given = json.loads(Path(os.environ["REDKEY_INPUT_FILE"]).read_bytes())
    prompt = Path(os.environ["REDKEY_PROMPT_FILE"]).read_text(encoding="utf-8")
    outbox = Outbox(Path(os.environ["REDKEY_OUTBOX_FILE"]), Path(os.environ["REDKEY_USAGE_FILE"]))
    takes = len(inspect.signature(function).parameters)
    result = function(*(given, prompt, outbox)[: min(takes, 3)])
    return asyncio.run(_wait(result)) if inspect.isawaitable(result) else result


async def _wait(awaitable: Any) -> Any:
    return await awaitable


def main() -> int:
    """Import the function, call it with the step, and return the exit code."""
    target, *path = sys.argv[1:]
    sys.path[:0] = path
    # Prints of the callable must not mix with the envelope.
    sys.stdout = sys.stderr
    try:
        function = _load(target)
        if os.environ.get("REDKEY_CHECK_ONLY"):
            return 0
        result = json.dumps(_call(function))
    except Exception:
        traceback.print_exc()
        return 1
    Path(os.environ["REDKEY_OUTPUT_FILE"]).write_text(result, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
