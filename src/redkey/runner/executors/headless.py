"""Run the command line of a coding agent without a terminal: Claude Code, Codex, Gemini.

`claude_code`, `codex` and `gemini` have the command and the parser of its output. This module does the rest: it keeps
files beside the working directory, passes only the variables of that program, counts usage from its output (also when
it is stopped), and decides what its errors mean for the task and the runner.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from redkey.errors import AgentUnavailable, ConfigRefused, StepFailed
from redkey.runner.cost import Usage
from redkey.runner.envelope import input_bytes, read_output
from redkey.runner.executors.command import environment, wrapped
from redkey.runner.executors.patience import Busy, patiently
from redkey.runner.executors.port import Produced, Step, Terms
from redkey.runner.process import Ended, run

_BUSY: Final = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_REFUSED: Final = frozenset({401, 403, 404})
_LIMIT_WORDS = re.compile(
    r"usage limit|rate limit|hit your (?:\w+ )?limit|limit reached|quota|resource_exhausted", re.I
)
_STATUS = re.compile(r"(?:status|code|error|rejected)[\s:(\"]{1,3}([45]\d\d)\b", re.I)
_EPOCH = re.compile(r"\|(\d{10})\b")
_IN = re.compile(r"(?:try again|resets?) in ((?:~?\d+ ?[a-z]+,? ?(?:and )?)+)", re.I)
_PART = re.compile(r"(\d+) ?(d|h|m|s)", re.I)
_AT = re.compile(
    r"(?:try again|resets?)(?: at)? "
    r"(?:(?P<month>[A-Z][a-z]{2}) (?P<day>\d{1,2})(?:st|nd|rd|th)?,?(?: (?P<year>\d{4}))?,? (?:at )?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap]m)(?P<utc> \(UTC\))?",
    re.I,
)
_SECONDS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}

DEFAULT_MODEL: Final = "default"
# The schema of the answer in the form that every provider accepts: no other fields, all required.
ENVELOPE_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["success", "summary", "artifacts", "notes", "recommendation"],
    "properties": {
        "success": {"type": "boolean"},
        "summary": {"type": "string"},
        "artifacts": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["path", "operation", "content"],
                "properties": {
                    "path": {"type": "string"},
                    "operation": {"type": "string", "enum": ["create", "update"]},
                    "content": {"type": "string"},
                },
            },
        },
        "notes": {"type": "array", "items": {"type": "string"}},
        "recommendation": {"type": "string", "enum": ["proceed", "retry", "escalate"]},
    },
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of a command line; the files are outside the working directory."""

    model: str
    directory: Path
    prompt_file: Path
    schema_file: Path
    allowed: tuple[str, ...] = ()
    # The runner's sandbox holds the program, so its own sandbox and its questions are turned off.
    sandboxed: bool = False
    # Dollars that the step may still cost, if there is a cap.
    left_usd: float | None = None

    @property
    def model_options(self) -> list[str]:
        """The option that names the model; none for `default`, which leaves the choice to the program."""
        return [] if self.model == DEFAULT_MODEL else ["--model", self.model]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed output of a program: its last message, its usage, and its error."""

    text: str = ""
    used: tuple[Usage, ...] = ()
    error: str = ""
    status: int | None = None


class Headless(Protocol):
    """The command line of one coding agent."""

    program: str
    # Variables of the program's account and settings, which the agent may read.
    variables: tuple[str, ...]
    # Whether the system prompt has its own option; else it comes before the envelope on standard input.
    has_system_prompt: bool
    # Paths in the home directory that it writes: login and settings.
    settings: tuple[str, ...]

    def command(self, asked: Asked) -> list[str]: ...

    def environment(self, asked: Asked) -> Mapping[str, str]: ...

    def read(self, output: bytes, model: str) -> Said:
        """Parse an output, complete or cut off; unreadable lines are skipped."""
        ...


class HeadlessExecutor:
    """Runs a headless command line for each step."""

    def __init__(self, kind: Headless, model: str, terms: Terms) -> None:
        if shutil.which(kind.program) is None:
            text = f"there is no program {kind.program!r} on the PATH"
            raise ConfigRefused(text, code="program_missing")
        self._kind, self._model, self._terms = kind, model, terms

    async def run(self, step: Step) -> Produced:
        async def run() -> Produced:
            async with step.meter.permit():
                return await self._run(step)

        return await patiently(run, self._terms.patience_seconds)

    async def _run(self, step: Step) -> Produced:
        with tempfile.TemporaryDirectory(prefix="redkey-step-") as scratch:
            asked = Asked(
                model=self._model,
                directory=step.directory,
                prompt_file=Path(scratch) / "prompt.md",
                schema_file=Path(scratch) / "schema.json",
                allowed=self._terms.allowed,
                sandboxed=self._terms.sandbox is not None,
                left_usd=step.meter.left_usd,
            )
            asked.prompt_file.write_text(step.prompt, encoding="utf-8")
            asked.schema_file.write_bytes(msgspec.json.encode(ENVELOPE_SCHEMA))
            given = input_bytes(step.given)
            if not self._kind.has_system_prompt:
                given = f"{step.prompt}\n\n## Input\n\n".encode() + given
            heard = bytearray()
            try:
                ended = await run(
                    wrapped(self._terms.sandbox, self._kind.command(asked), step, Path(scratch)),
                    directory=step.directory,
                    environment=environment((*self._kind.variables, *self._terms.pass_on))
                    | dict(self._kind.environment(asked))
                    | {"TMPDIR": scratch},
                    given=given,
                    limits=self._terms.limits,
                    heard=heard,
                    log=step.log,
                )
            except BaseException:
                # Usage of a stopped program counts too.
                step.meter.add(*self._kind.read(bytes(heard), self._model).used)
                raise
            said = self._kind.read(bytes(heard), self._model)
            step.meter.add(*said.used)
        return Produced(self._output(said, ended))

    def _output(self, said: Said, ended: Ended) -> Any:
        words = said.error or ("" if said.text else ended.complaint.strip()[-500:])
        if said.error or ended.code:
            judge(f"{self._kind.program}: {words or f'exit code {ended.code}'}", said.status)
        return read_output(said.text.encode())


def judge(words: str, status: int | None) -> None:
    """Raise the error that a failed command line means: Busy, AgentUnavailable or StepFailed."""
    if status is None and (found := _STATUS.search(words)):
        status = int(found[1])
    until = reset_time(words)
    if until is not None and (status == 429 or _LIMIT_WORDS.search(words)):
        raise AgentUnavailable(words, code="usage_limit", until=until)
    if status in _REFUSED:
        raise StepFailed(words, code="spawn_failed")
    if status in _BUSY or _LIMIT_WORDS.search(words):
        raise Busy(words)
    raise StepFailed(words, code="exit_code")


def reset_time(words: str, now: float | None = None) -> float | None:
    """Read the end of a usage limit from a program's message, as Unix seconds; None if it names none.

    Programs write local times without a zone; they run in the time zone of the runner.
    """
    now = time.time() if now is None else now
    if found := _EPOCH.search(words):
        return float(found[1])
    if found := _IN.search(words):
        seconds = sum(int(number) * _SECONDS[unit.lower()] for number, unit in _PART.findall(found[1]))
        return now + seconds if seconds else None
    found = _AT.search(words)
    if found is None:
        return None
    here = datetime.fromtimestamp(now, UTC) if found["utc"] else datetime.fromtimestamp(now).astimezone()
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    try:
        at = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            month = datetime.strptime(found["month"].title(), "%b").month
            at = at.replace(year=int(found["year"] or here.year), month=month, day=int(found["day"]))
            if not found["year"] and at < here:
                at = at.replace(year=at.year + 1)
        elif at < here:
            at += timedelta(days=1)
    except ValueError:
        return None
    return at.timestamp()


def lines(output: bytes) -> list[dict[str, Any]]:
    """Return the JSON objects in an output, one per line; other lines are skipped."""
    found = []
    for line in output.splitlines():
        if line.startswith(b"{"):
            try:
                found.append(msgspec.json.decode(line))
            except msgspec.DecodeError:
                continue
    return found
