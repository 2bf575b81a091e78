"""A submission: one command before it is recorded, and the callers that wait for its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import structlog

from redkey.commands.actor import Actor
from redkey.commands.command import Command
from redkey.errors import RedKeyError
from redkey.ledger.ports import Content
from redkey.reducers.changes import Offer
from redkey.services.answers import KeepAnswer
from redkey.services.ordered.messages import ProjectMessages
from redkey.services.outcome import Outcome
from redkey.services.place import Place

# A request: a command of a caller, a reply that the server itself keeps, or messages of a network.
Request = Command | KeepAnswer | ProjectMessages
_log = structlog.get_logger("redkey.services")

# Makes the reply from an outcome at its place; called inside the unit.
MakeReply = Callable[[Outcome, Place], Any]
# Called once with the outcome, or with the reason why there is none.
Done = Callable[[Outcome | RedKeyError], None]


class Submission:
    """One command with its content; its callers get the outcome once it is durable. Without a command, it only lets
    what is due be recorded.

    `deadline` is set if it may wait for a task, `offer` if a task was offered to it, `alone` if it must not share a
    unit because an earlier shared unit failed. It is over when it was answered, or when all its callers have left;
    `on_end` is called once then.
    """

    __slots__ = (
        "_callers",
        "_on_end",
        "_on_ordered",
        "_on_wait",
        "alone",
        "body",
        "caller",
        "command",
        "contents",
        "damage",
        "deadline",
        "event_id",
        "extensions",
        "idem",
        "nothing",
        "offer",
        "over",
        "reply",
        "sent",
        "timer",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        caller: Actor,
        command: Request | None,
        contents: tuple[Content, ...],
        idem: str,
        body: str,
        on_end: Callable[[Submission], None],
        deadline: float = 0,
        reply: MakeReply | None = None,
        *callers: Done,
        extensions: dict[str, Any] | None = None,
    ) -> None:
        self.topic, self.caller, self.command, self.contents = topic, caller, command, contents
        self.idem, self.body, self.deadline, self.reply = idem, body, deadline, reply
        self.extensions, self._on_end = extensions, on_end
        self._callers = [*callers]
        # Called when it begins to wait for a task; None once it has begun.
        self._on_wait: list[Callable[[], None]] | None = []
        # over: no caller waits for it any more.
        self.over = self.alone = False
        self.offer: Offer | None = None
        # Why its reply cannot be made: content that the reply would show is damaged.
        self.damage: RedKeyError | None = None
        # The outcome if no task comes until the deadline.
        self.nothing: Outcome | None = None
        self.timer: asyncio.TimerHandle | None = None
        # The places of its messages on the network that gives the order, after it was decided and submitted.
        self.sent: tuple[int, ...] = ()
        # The event of the request, known as soon as it was decided; and the callback for when it is ordered.
        self.event_id = ""
        self._on_ordered: list[Callable[[str], None]] = []

    def when_waiting(self, begin: Callable[[], None]) -> None:
        """Call `begin` as soon as a unit has found no task for it: now, if that has happened already."""
        if self._on_wait is None:
            begin()
        else:
            self._on_wait.append(begin)

    def begin_waiting(self) -> None:
        """Begin to wait: a unit has found no task for it."""
        begun, self._on_wait = self._on_wait, None
        for begin in begun or ():
            begin()

    def when_ordered(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the event of the request once a network has ordered it: now, if it has."""
        if self.sent:
            tell(self.event_id)
        else:
            self._on_ordered.append(tell)

    def has_its_place(self, sequences: tuple[int, ...]) -> None:
        """Note that a network has ordered the request."""
        self.sent = sequences
        waiting, self._on_ordered = self._on_ordered, []
        for tell in waiting:
            tell(self.event_id)

    def join(self, done: Done) -> None:
        """Add a caller that sent the same request again."""
        self._callers.append(done)

    def leave(self, done: Done) -> None:
        """Remove a caller; a submission without callers is over."""
        if done in self._callers:
            self._callers.remove(done)
            if not self._callers:
                self._end()

    def settle(self, outcome: Outcome | RedKeyError) -> None:
        """Answer the callers with the outcome, or with the reason why there is none."""
        if not self.over:
            self._end()
        callers, self._callers = self._callers, []
        for done in callers:
            try:
                done(outcome)
            except Exception as error:
                # The commit path serves all callers: a failure of one must not stop it.
                _log.error("an answer failed", exc_info=error)

    def abandon(self) -> None:
        """End the submission without a result: the same request, sent again, starts from the beginning."""
        self._end()

    def _end(self) -> None:
        if not self.over:
            self.over = True
            self._on_end(self)
