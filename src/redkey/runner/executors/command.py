"""Any program as an agent: it reads the input envelope from standard input and writes the output to standard output.

| variable | what it names |
|---|---|
| `REDKEY_INPUT_FILE` | the input envelope |
| `REDKEY_PROMPT_FILE` | the system prompt |
| `REDKEY_OUTPUT_FILE` | where the output envelope may be written instead of on standard output |
| `REDKEY_OUTBOX_FILE` | where messages to send may be written, one JSON object per line |
| `REDKEY_USAGE_FILE` | where usage may be written, one JSON object per line: `cost_usd`, or `model` and tokens |

A command that is a text is run by the shell, a list is run directly. No part of a task is ever put into the command.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from redkey.errors import ConfigRefused, OutputRefused, RedKeyError, StepFailed
from redkey.runner.artifacts import read_inside
from redkey.runner.cost import read_usage
from redkey.runner.envelope import input_bytes, read_output
from redkey.runner.executors.port import Produced, Step, Terms
from redkey.runner.mail import read_outbox
from redkey.runner.process import Guarded, run
from redkey.runner.sandbox import Sandbox
from redkey.wire.step import StepOutput

# Variables of the machine that programs need; none of them holds a secret.
PASSED_ON: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_SMALL_FILE: Final = 1024 * 1024
_COMPLAINT_CHARACTERS: Final = 500
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# A word with one of these characters is not a plain program name.
_SHELL_SIGNS = re.compile(r"[$`(){}<>|&;*?\[\]~!\n]")


class CommandExecutor:
    """Runs a program for each step."""

    def __init__(self, command: str | Sequence[str], terms: Terms) -> None:
        self._command = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        self._terms = terms
        check_command(command)

    async def run(self, step: Step) -> Produced:
        async with step.meter.permit():
            return await self._run(step)

    async def _run(self, step: Step) -> Produced:
        with tempfile.TemporaryDirectory(prefix="redkey-step-") as scratch:
            files = _lay_out(Path(scratch), step)
            try:
                ended = await run(
                    wrapped(self._terms.sandbox, self._command, step, Path(scratch)),
                    directory=step.directory,
                    environment=environment(self._terms.pass_on) | files | {"TMPDIR": scratch},
                    given=input_bytes(step.given),
                    limits=self._terms.limits,
                    log=step.log,
                )
            except BaseException:
                # Usage of a stopped program counts too; errors in its usage file do not matter then.
                with contextlib.suppress(RedKeyError):
                    _count(step, Path(scratch))
                raise
            _count(step, Path(scratch))
            said = _written(Path(scratch), "output.json", self._terms.limits.output_bytes)
            if said and step.log is not None:
                with contextlib.suppress(OSError):
                    (step.log / "output.json").write_bytes(said)
            said = said or ended.output
            output = _read(said, ended.code, ended.complaint)
            mail = _written(Path(scratch), "outbox.jsonl", _SMALL_FILE)
        return Produced(output, read_outbox(mail))


def _count(step: Step, scratch: Path) -> None:
    used = _written(scratch, "usage.jsonl", _SMALL_FILE)
    step.meter.add(*(read_usage(used) if used.strip() else ()))


def environment(pass_on: Sequence[str] = ()) -> dict[str, str]:
    """Return a clean environment: the usual variables, and those that the operator names."""
    return {name: os.environ[name] for name in (*PASSED_ON, *pass_on) if name in os.environ}


def wrapped(sandbox: Sandbox | None, command: Sequence[str], step: Step, scratch: Path) -> Sequence[str] | Guarded:
    """Wrap the command of a step in the sandbox, if there is one."""
    if sandbox is None:
        return command
    return sandbox.wrap(command, step.directory, (*step.writable, scratch))


def check_command(command: str | Sequence[str]) -> None:
    """Raise ConfigRefused if the program of a command does not exist.

    This checks the first plain word of a shell text. Relative paths are not checked, because each task has its own
    working directory.
    """
    name = _program(command) if isinstance(command, str) else next(iter(command), "")
    if not name and not isinstance(command, str):
        raise ConfigRefused("the command is empty", code="program_missing")
    if not name or ("/" in name and not name.startswith("/")):
        return
    if isinstance(command, str):
        # The shell knows its builtins and the programs on the PATH.
        asked = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", name]
        found = subprocess.run(asked, env=environment(), capture_output=True, check=False).returncode == 0  # noqa: S603
    else:
        found = shutil.which(name) is not None
    if not found:
        raise ConfigRefused(f"there is no program {name[:200]!r}", code="program_missing")


def placed_command(command: str | Sequence[str], directory: Path) -> str | Sequence[str]:
    """Replace a relative path of the command's program by the full path in a directory.

    ConfigRefused if the program does not exist. Used for agents whose tasks start in empty directories.
    """
    name = _program(command) if isinstance(command, str) else next(iter(command), "")
    if "/" not in name or name.startswith("/"):
        return command
    program = directory / name
    if not program.is_file():
        raise ConfigRefused(f"there is no program {name[:200]!r} in {directory}", code="program_missing")
    if not isinstance(command, str):
        return [str(program), *list(command)[1:]]
    # A quoted word is left to the shell.
    return re.sub(rf"(?<!\S){re.escape(name)}(?!\S)", lambda _: shlex.quote(str(program)), command, count=1)


def files_left_behind(command: str | Sequence[str], directory: Path) -> list[str]:
    """Return the relative arguments that are files in `directory` and would not be found from a task's directory."""
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError:
        return []
    return [word for word in words[1:] if not word.startswith(("/", "-")) and (directory / word).is_file()]


def _program(text: str) -> str:
    """Return the first program name in a shell text; empty if it is not clear."""
    try:
        words = shlex.split(text)
    except ValueError:
        return ""
    name = next((word for word in words if not _ASSIGNMENT.match(word)), "")
    return "" if _SHELL_SIGNS.search(name) else name


def _lay_out(scratch: Path, step: Step) -> dict[str, str]:
    """Write the program's input files and return its variables; only this user can read the files."""
    (scratch / "input.json").write_bytes(input_bytes(step.given))
    (scratch / "prompt.md").write_text(step.prompt, encoding="utf-8")
    return {
        "REDKEY_INPUT_FILE": str(scratch / "input.json"),
        "REDKEY_PROMPT_FILE": str(scratch / "prompt.md"),
        "REDKEY_OUTPUT_FILE": str(scratch / "output.json"),
        "REDKEY_OUTBOX_FILE": str(scratch / "outbox.jsonl"),
        "REDKEY_USAGE_FILE": str(scratch / "usage.jsonl"),
    }


def _written(scratch: Path, name: str, most: int) -> bytes:
    """Read a file that the program may have written; empty if there is none."""
    try:
        return read_inside(scratch, name, most)
    except OutputRefused as refused:
        if refused.code == "artifact_missing":
            return b""
        raise StepFailed(refused.message, code="output_too_large") from refused


def _read(said: bytes, code: int, complaint: str) -> StepOutput:
    """Read the envelope, whatever the exit code is; without an envelope the exit code is the error."""
    try:
        return read_output(said)
    except StepFailed as failed:
        if code == 0:
            raise
        words = complaint.strip()[-_COMPLAINT_CHARACTERS:]
        text = f"the program ended with exit code {code}" + (f": {words}" if words else "")
        # Shell convention: the program was not found, or is not executable.
        raise StepFailed(
            text, code="spawn_failed" if code in (126, 127) and not said.strip() else "exit_code"
        ) from failed
