"""A submission: one command on its way to the ledger, and the caller that waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

from redkey.commands.caller import Caller
from redkey.ledger.ports import Content
from redkey.services.outcome import Outcome


class Submission:
    """One command with its content; `future` gets the outcome once it is durable."""

    __slots__ = ("body", "caller", "command", "contents", "deadline", "future", "idem", "topic", "waiting")

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
        self.waiting = 0

    async def outcome(self) -> Outcome:
        """Wait for the outcome beside others that sent the same request; when all are gone, it is given up."""
        self.waiting += 1
        try:
            return await asyncio.shield(self.future)
        finally:
            self.waiting -= 1
            if not self.waiting:
                self.future.cancel()
