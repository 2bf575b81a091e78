"""Following: a caller gets events as they are recorded, for as long as it may read them."""

from __future__ import annotations

from redkey.commands.decision import Refused
from redkey.errors import TooManySubscribers
from redkey.services.caller import Caller
from redkey.services.subscriptions import Filter, Subscription

_LARGEST_CURSOR = 1 << 40
_RETRY_SECONDS = 5


class Following:
    """A subscription that ends when the caller's authority ends or the server stops; call `leave` at the end."""

    def __init__(self, caller: Caller, subscription: Subscription) -> None:
        self._subscriptions, self._subscription = caller.means.subscriptions, subscription
        self.take, self.wait = subscription.take, subscription.wait
        self._over = False
        try:
            self._release = caller.means.authority.hold(caller.principal, self._end)
        except BaseException:
            subscription.leave()
            raise

    @property
    def ended(self) -> bool:
        return self._over or self._subscriptions.stopping

    @property
    def behind(self) -> bool:
        return self._subscription.behind

    @property
    def position(self) -> int:
        """Return the place up to which everything was read."""
        return self._subscription.position

    def leave(self) -> None:
        self._subscription.leave()
        self._release()

    def _end(self) -> None:
        """End the subscription: the caller may not read any more."""
        self._over = True
        self._subscription.wake()


def follow(caller: Caller, wanted: Filter, after: int | None) -> Following:
    """Follow the wanted events after a place of the ledger; from its head on if `after` is None."""
    means = caller.means
    if after is not None and not 0 <= after < _LARGEST_CURSOR:
        raise Refused(422, "cursor_invalid", "Last-Event-ID and after are ids of this stream: whole numbers.")
    if after is not None:
        check_reached(caller, after)
    try:
        return Following(caller, means.subscriptions.open(caller.topic, after, wanted))
    except TooManySubscribers as refused:
        raise Refused(503, refused.code, refused.message, retry_seconds=_RETRY_SECONDS) from None


def check_reached(caller: Caller, place: int) -> None:
    """Refuse a place that the ledger of the workspace has not reached: events before it would be lost unseen."""
    if place > caller.means.store.head(caller.topic).sequence:
        detail = f"The ledger of this workspace has not reached {place}; begin without a cursor, or at a smaller one."
        raise Refused(422, "cursor_beyond_head", detail)
