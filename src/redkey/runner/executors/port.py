"""The port between the runner and an agent: a step goes in, an output envelope and its messages come out.

An executor is cancelled when the lease is lost, and returns only when nothing of the agent runs on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import msgspec

from redkey.client import Assignment
from redkey.runner.cost import Meter
from redkey.runner.mail import Mail
from redkey.runner.process import Limits
from redkey.runner.sandbox import Sandbox
from redkey.wire.step import StepInput, StepOutput


class Step(msgspec.Struct, frozen=True):
    """One call of an agent: its prompt, its input, and the directory where it works."""

    prompt: str
    given: StepInput
    directory: Path
    # Counts what the call uses, while it uses it.
    meter: Meter = msgspec.field(default_factory=Meter)
    # Where the executor leaves what the agent said (stdout, stderr, a transcript); None when nobody keeps it.
    log: Path | None = None
    # What the agent may write beside its directory: the repository that a worktree belongs to.
    writable: tuple[Path, ...] = ()
    # The task itself, for agents that are told of it in words of their own; None in tests of single executors.
    task: Assignment | None = None
    # Tells those who watch the task how the work goes.
    say: Callable[[str], Awaitable[object]] | None = None


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What an executor may do and take, the same for every step."""

    # Beginnings of command lines that the agent may run without a sandbox.
    allowed: tuple[str, ...] = ()
    # Variables of the runner's environment that the agent gets.
    pass_on: tuple[str, ...] = ()
    limits: Limits = Limits()
    # How long a busy or absent model is asked again.
    patience_seconds: float = 60.0
    sandbox: Sandbox | None = None


class Produced(msgspec.Struct, frozen=True):
    """What an agent handed back, and whom it wrote to."""

    output: StepOutput
    mail: tuple[Mail, ...] = ()


class Executor(Protocol):
    """Calls one kind of agent."""

    async def run(self, step: Step) -> Produced:
        """Run the agent to its end; StepFailed when it hands back no envelope, OutputRefused for a bad one."""
        ...
