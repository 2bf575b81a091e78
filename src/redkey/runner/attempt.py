"""One attempt at a task while it is worked on: what is known at its beginning, and what comes with each try."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

import msgspec

from redkey.client import Assignment
from redkey.runner.cost import Meter
from redkey.runner.envelope import Paths
from redkey.runner.files import Snapshot
from redkey.runner.logs import AttemptLog
from redkey.runner.mail import Mail
from redkey.runner.mailbox import Mailbox
from redkey.runner.prompt import Remark, Remembered
from redkey.runner.workplace import Place
from redkey.wire.legacy import Brief


class Attempt(msgspec.Struct):
    """The state of one attempt."""

    task: Assignment
    brief: Brief
    place: Place
    paths: Paths
    # The name of the plan that the task is of, or of its queue.
    workflow: str
    memories: Sequence[Remembered]
    # What was said about the task, and the answer that lifted its block.
    remarks: Sequence[Remark]
    mailbox: Mailbox
    # Counts what all tries use, also those that fail.
    meter: Meter
    # What every try must know beyond the notes of the tasks before, and what was found wrong with the last one.
    said: list[str]
    findings: list[str] = msgspec.field(default_factory=list)
    # When the task was created.
    created_at: str = ""
    tries: int = 0
    # How often its work passed and did not fit to what had landed meanwhile.
    conflicts: int = 0
    # The last of these, as the brief tells it.
    conflict: Remark | None = None
    # Gives the merge queue back when the attempt ends, if it holds it.
    turn: AsyncExitStack = msgspec.field(default_factory=AsyncExitStack)
    has_turn: bool = False
    # What was sent: another try that says the same says it once.
    sent: set[Mail] = msgspec.field(default_factory=set)
    # The files that were there when the attempt began, and when the try did; empty in a directory that others use too.
    at_first: Snapshot = msgspec.field(default_factory=dict)
    at_try: Snapshot = msgspec.field(default_factory=dict)
    log: AttemptLog | None = None
    # Tells those who watch the task how the work goes.
    say: Callable[[str], Awaitable[object]] | None = None
    # path -> id of the artifact once it is announced: what this attempt wrote it may write again.
    own: dict[str, str] = msgspec.field(default_factory=dict)
