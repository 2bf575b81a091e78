"""The interface between the runner and an agent: a step in, an output envelope and messages out.

An executor is cancelled when the lease is lost. It returns only after everything of the agent has ended.
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
    # Counts the usage while the call runs.
    meter: Meter = msgspec.field(default_factory=Meter)
    # Directory for the agent's output (stdout, stderr, a transcript); None if it is not kept.
    log: Path | None = None
    # Further directories that the agent may write: the clone of a worktree.
    writable: tuple[Path, ...] = ()
    # The task, for executors that pass on more than the envelope; None in tests of single executors.
    task: Assignment | None = None
    # Reports progress to everyone who watches the task.
    say: Callable[[str], Awaitable[object]] | None = None


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and permissions of an executor, the same for every step."""

    # Prefixes of command lines that the agent may run without a sandbox.
    allowed: tuple[str, ...] = ()
    # Variables of the runner's environment that the agent gets.
    pass_on: tuple[str, ...] = ()
    limits: Limits = Limits()
    # How many seconds calls to a busy or absent model are repeated.
    patience_seconds: float = 60.0
    sandbox: Sandbox | None = None


class Produced(msgspec.Struct, frozen=True):
    """The output of an agent, and the messages that it sends."""

    output: StepOutput
    mail: tuple[Mail, ...] = ()


class Executor(Protocol):
    """Calls one kind of agent."""

    async def run(self, step: Step) -> Produced:
        """Run the agent to its end; StepFailed if it returns no envelope, OutputRefused for an invalid one."""
        ...
