"""Semantic verification: an evaluator judges the output by the contract's `evaluate` sentence, passed on word for word.

An evaluator answers with one JSON object, `{"verdict": "pass" | "fail", "reason": "..."}`. Any other answer fails the
check.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from redkey.errors import JsonRefused, StepFailed
from redkey.runner.cost import Usage, read_usage
from redkey.runner.executors.command import environment
from redkey.runner.process import Limits, run
from redkey.wire.decode import decode

_ANSWER_BYTES = 64 * 1024
_USAGE = "usage.jsonl"


class Question(msgspec.Struct, frozen=True):
    """The input of an evaluator: the sentence of the contract, and the work."""

    evaluate: str
    goal: str
    acceptance_criteria: tuple[str, ...]
    summary: str
    # path -> content
    artifacts: dict[str, str]


class Verdict(msgspec.Struct, frozen=True):
    """Whether the work passes, why, and the usage of the evaluator."""

    verdict: Literal["pass", "fail"]
    reason: str = ""
    used: tuple[Usage, ...] = ()


class Evaluator(Protocol):
    """Judges work."""

    async def judge(self, question: Question) -> Verdict: ...


class _Answer(msgspec.Struct, frozen=True):
    verdict: Literal["pass", "fail"]
    reason: str = ""


def read_verdict(answer: bytes, used: Sequence[Usage] = ()) -> Verdict:
    """Read the verdict in an answer; an unreadable answer is a failure."""
    try:
        value: Any = decode(answer.strip(), size_limit=_ANSWER_BYTES)
        said = msgspec.convert(value, _Answer)
    except (JsonRefused, msgspec.ValidationError) as cause:
        return Verdict("fail", f"the evaluator gave no verdict: {str(cause)[:300]}", tuple(used))
    return Verdict(said.verdict, said.reason[:2000], tuple(used))


class CommandEvaluator:
    """Runs a program as evaluator: the question as JSON on standard input, the verdict on standard output."""

    def __init__(
        self, command: str | Sequence[str], *, pass_on: Sequence[str] = (), limits: Limits | None = None
    ) -> None:
        self._command = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        self._pass_on, self._limits = tuple(pass_on), limits or Limits(seconds=600.0, output_bytes=_ANSWER_BYTES)

    async def judge(self, question: Question) -> Verdict:
        with tempfile.TemporaryDirectory(prefix="redkey-evaluate-") as scratch:
            spent = Path(scratch) / _USAGE
            try:
                ended = await run(
                    self._command,
                    directory=Path(scratch),
                    environment=environment(self._pass_on) | {"REDKEY_USAGE_FILE": str(spent)},
                    given=msgspec.json.encode(question),
                    limits=self._limits,
                )
            except StepFailed as failed:
                return Verdict("fail", f"the evaluator gave no verdict: {failed.message}")
            used = tuple(read_usage(spent.read_bytes())) if spent.is_file() and spent.stat().st_size else ()
        if ended.code:
            return Verdict("fail", f"the evaluator ended with exit code {ended.code}", used)
        return read_verdict(ended.output, used)
