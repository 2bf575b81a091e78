"""The tools for models that the runner calls itself: files of the directory, allowed commands, messages.

Links that lead out of the directory are not followed. A command runs only if it starts with an allowed prefix. It is
split into words, runs without a shell, and gets the same clean environment as other programs.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from redkey.errors import OutputRefused, RedKeyError
from redkey.runner.artifacts import put_file, read_inside
from redkey.runner.executors.command import environment, wrapped
from redkey.runner.executors.port import Step, Terms
from redkey.runner.mail import OUTBOX_LIMIT, Mail, read_mail
from redkey.runner.process import Limits, run
from redkey.wire.step_paths import path_findings

_FILE_BYTES: Final = 256 * 1024
_LISTED: Final = 1000
_COMMAND_SECONDS: Final = 600.0
_COMMAND_CHARACTERS: Final = 20_000
_TEXT: Final = {"type": "string"}


def _tool(name: str, description: str, required: Sequence[str], properties: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "required": list(required), "properties": dict(properties)}
    return {"name": name, "description": description, "input_schema": schema}


_FILES: Final = (
    _tool("read_file", "The text of a file in the working directory.", ["path"], {"path": _TEXT}),
    _tool("list_files", "The files in the working directory, as relative paths.", [], {}),
    _tool(
        "write_file",
        "Write a whole file in the working directory; its folders are created.",
        ["path", "content"],
        {"path": _TEXT, "content": _TEXT},
    ),
    _tool(
        "edit_file",
        "Replace text in a file of the working directory. `old` must occur exactly once.",
        ["path", "old", "new"],
        {"path": _TEXT, "old": _TEXT, "new": _TEXT},
    ),
)
_MESSAGE: Final = _tool(
    "send_message",
    "Send a message to an agent (its slug), a role (roles.ba) or human, when you have finished.",
    ["to_agent", "subject"],
    {
        "to_agent": _TEXT,
        "subject": _TEXT,
        "body": _TEXT,
        "message_type": {"enum": ["question", "task.feedback", "info", "status.update"]},
        "priority": {"enum": [1, 2, 3]},
        "action_required": {"type": "boolean"},
    },
)


class Tools:
    """The tools of one step."""

    def __init__(self, step: Step, terms: Terms) -> None:
        self._step, self._directory, self._terms = step, step.directory, terms
        self._allowed = [shlex.split(prefix) for prefix in terms.allowed]
        self.mail: list[Mail] = []

    @property
    def described(self) -> list[dict[str, Any]]:
        """Return the tools in the format of Anthropic's Messages API; `input_schema` is a JSON Schema."""
        found = [*_FILES, _MESSAGE]
        if self._allowed:
            known = ", ".join(shlex.join(prefix) for prefix in self._allowed)
            text = f"Run a program in the working directory, without a shell. Allowed beginnings: {known}."
            found.append(_tool("run_command", text, ["command"], {"command": _TEXT}))
        return found

    async def answer(self, name: str, given: Any) -> tuple[str, bool]:
        """Run a tool; return its result, and whether that is an error."""
        known: dict[str, Callable[[Any], Awaitable[str]]] = {
            "read_file": self._read,
            "list_files": self._list,
            "write_file": self._write,
            "edit_file": self._edit,
            "send_message": self._send,
            "run_command": self._run,
        }
        try:
            if name not in known:
                raise OutputRefused(f"there is no tool {name!r}")
            return await known[name](given if isinstance(given, dict) else {}), False
        except RedKeyError as refused:
            return refused.message, True

    async def _read(self, given: dict[str, Any]) -> str:
        data = read_inside(self._directory, _text(given, "path"), _FILE_BYTES)
        return data.decode("utf-8", "replace") or "(the file is empty)"

    async def _list(self, _: dict[str, Any]) -> str:
        found: list[str] = []
        for folder, folders, names in os.walk(self._directory):
            folders[:] = sorted(name for name in folders if name != ".git")
            found += sorted(os.path.relpath(Path(folder) / name, self._directory) for name in names)
            if len(found) > _LISTED:
                return "\n".join([*found[:_LISTED], "… and more"])
        return "\n".join(found) or "(no files)"

    async def _write(self, given: dict[str, Any]) -> str:
        path, content = _text(given, "path"), _text(given, "content")
        self._put(path, content)
        return f"Wrote {len(content.encode()):,} bytes to {path}."

    async def _edit(self, given: dict[str, Any]) -> str:
        path, old, new = _text(given, "path"), _text(given, "old"), _text(given, "new")
        try:
            before = read_inside(self._directory, path, _FILE_BYTES).decode()
        except UnicodeDecodeError as cause:
            raise OutputRefused(f"{path!r} is not text; write it whole") from cause
        count = before.count(old) if old else 0
        if count != 1:
            raise OutputRefused(f"`old` occurs {count} times in {path!r}; it must occur exactly once")
        self._put(path, before.replace(old, new))
        return f"Edited {path}."

    def _put(self, path: str, content: str) -> None:
        for finding in path_findings(path, "/path"):
            if finding.severity == "error":
                raise OutputRefused(f"{path[:200]!r}: {finding.message}", code=finding.code)
        put_file(self._directory, path, [content.encode()])

    async def _send(self, given: dict[str, Any]) -> str:
        if len(self.mail) >= OUTBOX_LIMIT:
            raise OutputRefused(f"a step sends at most {OUTBOX_LIMIT} messages")
        self.mail.append(read_mail(given))
        return "It will be sent when you have finished."

    async def _run(self, given: dict[str, Any]) -> str:
        command = _text(given, "command")
        try:
            words = shlex.split(command)
        except ValueError as cause:
            raise OutputRefused(f"the command cannot be split into words: {cause}") from cause
        if not words or not any(words[: len(prefix)] == prefix for prefix in self._allowed):
            known = ", ".join(shlex.join(prefix) for prefix in self._allowed) or "none"
            raise OutputRefused(f"this command is not allowed; allowed beginnings: {known}", code="command_not_allowed")
        with tempfile.TemporaryDirectory(prefix="redkey-tool-") as scratch:
            ended = await run(
                wrapped(self._terms.sandbox, words, self._step, Path(scratch)),
                directory=self._directory,
                environment=environment(self._terms.pass_on) | {"TMPDIR": scratch},
                limits=Limits(seconds=_COMMAND_SECONDS, output_bytes=4 * 1024 * 1024),
            )
        said = f"{ended.output.decode('utf-8', 'replace')}\n{ended.complaint}".strip()
        # The end of a long output is the most useful part.
        cut = f"({len(said) - _COMMAND_CHARACTERS:,} characters before this were left out)\n"
        shown = said if len(said) <= _COMMAND_CHARACTERS else cut + said[-_COMMAND_CHARACTERS:]
        return f"exit code {ended.code}\n{shown}"


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise OutputRefused(f"give {name!r} as text")
    return value
