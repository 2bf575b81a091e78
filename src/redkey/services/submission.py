"""A submission: one command on its way to the ledger, and those who wait for what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from redkey.commands.caller import Caller
from redkey.errors import RedKeyError
from redkey.ledger.ports import Content
from redkey.reducers.world import Offer
from redkey.services.outcome import Outcome


class Submission:
    """One command with its content; whoever sent it gets the outcome once it is durable.

    `deadline` is set when it may wait for a task, `offer` when one was offered to it, `alone` when it must not
    share a unit: something that it shared one with could not be done. It is over when it was answered, or when
    everybody who waited for it is gone; `on_end` is told of that once.
    """

    __slots__ = (
        "_callers",
        "_ended",
        "_on_end",
        "alone",
        "body",
        "caller",
        "command",
        "contents",
        "deadline",
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
        on_end: Callable[[Submission], None],
        deadline: float = 0,
    ) -> None:
        self.topic, self.caller, self.command, self.contents = topic, caller, command, contents
        self.idem, self.body, self.deadline = idem, body, deadline
        self._on_end = on_end
        self._callers: list[asyncio.Future[Outcome]] = []
        self._ended = self.alone = False
        self.offer: Offer | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def over(self) -> bool:
        """True when nobody waits for it any more: it was answered, or they are gone."""
        if self._ended:
            return True
        # A caller that is gone lets go of its future at once, and takes its own leave a turn of the loop later.
        for future in self._callers:
            if not future.done():
                return False
        return bool(self._callers)

    async def outcome(self) -> Outcome:
        """Wait for the outcome, beside others that sent the same request; when all are gone, it is given up."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._callers.append(future)
        try:
            return await future
        finally:
            self._callers.remove(future)
            if not self._callers:
                self._end()

    def settle(self, outcome: Outcome) -> None:
        """Answer whoever waits."""
        self._end()
        for future in self._callers:
            if not future.done():
                future.set_result(outcome)

    def fail(self, failure: RedKeyError) -> None:
        """Tell whoever waits why there is no outcome."""
        self._end()
        for future in self._callers:
            if not future.done():
                future.set_exception(failure)

    def abandon(self) -> None:
        """Nothing will be done about it any more: whoever sends the same request begins anew."""
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._on_end(self)
