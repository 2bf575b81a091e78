"""The state of one attempt at a task: what is known at its start, and what each try adds."""

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
    # The name of the task's plan, else of its queue.
    workflow: str
    memories: Sequence[Remembered]
    # Messages about the task, and the answer that lifted its block.
    remarks: Sequence[Remark]
    mailbox: Mailbox
    # Counts the usage of all tries, including failed ones.
    meter: Meter
    # Notes for every try beside those of earlier tasks, and the findings of the last verification.
    said: list[str]
    findings: list[str] = msgspec.field(default_factory=list)
    # When the task was created.
    created_at: str = ""
    tries: int = 0
    # How often the work passed but conflicted with what had landed meanwhile.
    conflicts: int = 0
    # The last conflict, as the brief shows it.
    conflict: Remark | None = None
    # Releases the merge queue at the end of the attempt, if the attempt holds it.
    turn: AsyncExitStack = msgspec.field(default_factory=AsyncExitStack)
    has_turn: bool = False
    # Messages that were sent, so that another try does not send them again.
    sent: set[Mail] = msgspec.field(default_factory=set)
    # The files at the start of the attempt and of the try; empty in a shared directory.
    at_first: Snapshot = msgspec.field(default_factory=dict)
    at_try: Snapshot = msgspec.field(default_factory=dict)
    log: AttemptLog | None = None
    # Reports progress to everyone who watches the task.
    say: Callable[[str], Awaitable[object]] | None = None
    # path -> artifact id once announced; this attempt may write its own files again.
    own: dict[str, str] = msgspec.field(default_factory=dict)
