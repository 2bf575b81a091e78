"""A submission: one command on its way to the ledger, and the callers that wait for its outcome."""

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
from redkey.services.outcome import Outcome
from redkey.services.place import Place

# What may be submitted: a command of somebody, or an answer that the server itself keeps.
Request = Command | KeepAnswer
_log = structlog.get_logger("redkey.services")

# How an outcome becomes a reply, at its place; made inside the unit.
MakeReply = Callable[[Outcome, Place], Any]
# Called once with the outcome, or with the reason why there is none.
Done = Callable[[Outcome | RedKeyError], None]


class Submission:
    """One command with its content; its callers get the outcome once it is durable. Without a command, time passes.

    `deadline` is set when it may wait for a task, `offer` when one was offered to it, `alone` when it must not share
    a unit because a unit that it shared before failed. It is over when it was answered, or when all its callers have
    left; `on_end` is called once then.
    """

    __slots__ = (
        "_callers",
        "_on_end",
        "_on_wait",
        "alone",
        "body",
        "caller",
        "command",
        "contents",
        "damage",
        "deadline",
        "idem",
        "nothing",
        "offer",
        "over",
        "reply",
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
    ) -> None:
        self.topic, self.caller, self.command, self.contents = topic, caller, command, contents
        self.idem, self.body, self.deadline, self.reply = idem, body, deadline, reply
        self._on_end = on_end
        self._callers = [*callers]
        # Called when it begins to wait for a task; None once it has begun.
        self._on_wait: list[Callable[[], None]] | None = []
        # over: no caller waits for it any more.
        self.over = self.alone = False
        self.offer: Offer | None = None
        # Why its reply cannot be made: content that it would show is damaged.
        self.damage: RedKeyError | None = None
        # What is answered if nothing comes until the deadline.
        self.nothing: Outcome | None = None
        self.timer: asyncio.TimerHandle | None = None

    def when_waiting(self, begin: Callable[[], None]) -> None:
        """Call `begin` as soon as a unit found nothing for it: now, if that was before."""
        if self._on_wait is None:
            begin()
        else:
            self._on_wait.append(begin)

    def begin_waiting(self) -> None:
        """A unit found nothing for it: it waits from now on."""
        begun, self._on_wait = self._on_wait, None
        for begin in begun or ():
            begin()

    def join(self, done: Done) -> None:
        """Wait for the outcome, beside others that sent the same request."""
        self._callers.append(done)

    def leave(self, done: Done) -> None:
        """Stop waiting; a submission that all its callers have left is given up."""
        if done in self._callers:
            self._callers.remove(done)
            if not self._callers:
                self._end()

    def settle(self, outcome: Outcome | RedKeyError) -> None:
        """Answer the callers: with the outcome, or with the reason why there is none."""
        if not self.over:
            self._end()
        callers, self._callers = self._callers, []
        for done in callers:
            try:
                done(outcome)
            except Exception as error:
                # The commit path serves everybody: one caller that fails must not stop it.
                _log.error("an answer failed", exc_info=error)

    def abandon(self) -> None:
        """Nothing will be done about it any more: the same request, sent again, begins anew."""
        self._end()

    def _end(self) -> None:
        if not self.over:
            self.over = True
            self._on_end(self)
