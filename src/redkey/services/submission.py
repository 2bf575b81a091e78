"""A submission: one command on its way to the ledger, and the caller that waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

from redkey.commands.caller import Caller
from redkey.ledger.ports import Content
from redkey.reducers.world import Offer
from redkey.services.outcome import Outcome


class Submission:
    """One command with its content; `future` gets the outcome once it is durable.

    `deadline` is set when it may wait for a task, `offer` when one was offered to it, `alone` when it must not
    share a unit: something that it shared one with could not be done.
    """

    __slots__ = (
        "alone",
        "body",
        "caller",
        "callers",
        "command",
        "contents",
        "deadline",
        "future",
        "idem",
        "offer",
        "timer",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        caller: Caller,
        command: Any,
        contents: tuple[Content, ...],
        idem: str,
        body: str,
        future: asyncio.Future[Outcome],
        deadline: float = 0,
    ) -> None:
        self.topic, self.caller, self.command, self.contents = topic, caller, command, contents
        self.idem, self.body, self.future, self.deadline = idem, body, future, deadline
        self.callers = 0
        self.alone = False
        self.offer: Offer | None = None
        self.timer: asyncio.TimerHandle | None = None

    async def outcome(self) -> Outcome:
        """Wait for the outcome beside others that sent the same request; when all are gone, it is given up."""
        self.callers += 1
        try:
            return await asyncio.shield(self.future)
        finally:
            self.callers -= 1
            if not self.callers:
                self.future.cancel()
