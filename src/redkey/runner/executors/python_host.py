"""The process in which a Python callable works: reads the step from its files, calls, writes the envelope."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from redkey.errors import ConfigRefused
from redkey.runner.executors.python import load, takes_outbox


class Outbox:
    """Where a callable leaves messages and says what it used; both are sent when it has finished."""

    def __init__(self, messages: Path, usage: Path) -> None:
        self._messages, self._usage = messages, usage

    def send(self, to_agent: str, subject: str, body: str = "", **more: Any) -> None:
        """Leave a message to an agent, a role or the humans."""
        _append(self._messages, {"to_agent": to_agent, "subject": subject, "body": body, **more})

    def used(self, **usage: Any) -> None:
        """Say what was used: `cost_usd`, or `model` with `input_tokens` and `output_tokens`."""
        _append(self._usage, usage)


def _append(path: Path, value: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps(value) + "\n")


def main() -> int:
    target, *path = sys.argv[1:]
    sys.path[:0] = path
    # Whatever the callable prints would break the envelope.
    sys.stdout = sys.stderr
    given = json.loads(Path(os.environ["REDKEY_INPUT_FILE"]).read_bytes())
    prompt = Path(os.environ["REDKEY_PROMPT_FILE"]).read_text(encoding="utf-8")
    outbox = Outbox(Path(os.environ["REDKEY_OUTBOX_FILE"]), Path(os.environ["REDKEY_USAGE_FILE"]))
    try:
        function = load(target)
        result = function(given, prompt, outbox) if takes_outbox(function) else function(given, prompt)
        if inspect.isawaitable(result):
            result = asyncio.run(_wait(result))
        Path(os.environ["REDKEY_OUTPUT_FILE"]).write_text(json.dumps(result), encoding="utf-8")
    except ConfigRefused as refused:
        sys.stderr.write(f"{refused.message}\n")
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


async def _wait(awaitable: Any) -> Any:
    return await awaitable


if __name__ == "__main__":
    sys.exit(main())
