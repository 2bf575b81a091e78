"""Failures of a request that was not recorded, as its caller sees them."""

from __future__ import annotations

from redkey.errors import CommitInDoubt, RedKeyError, StoreFull, StorePoisoned, WriterBusy


class Unavailable(RedKeyError):
    """The store cannot take the request now; send it again with the same idempotency key."""

    code = "unavailable"


class OrderAway(Unavailable):
    """A network gives this workspace its order, and this server is not connected to it; reading still works."""

    code = "order_unavailable"


def store_failure(cause: BaseException | None) -> RedKeyError:
    """Return what callers see if the store did not take their requests, with a code that they can act on."""
    if isinstance(cause, StoreFull | WriterBusy | StorePoisoned | CommitInDoubt):
        return type(cause)(cause.message)
    failure = Unavailable()
    failure.__cause__ = cause
    return failure


def internal_failure(cause: Exception) -> RedKeyError:
    """Return what the caller of a failed request sees: the reason, or that RedKey is at fault."""
    if isinstance(cause, RedKeyError):
        return cause
    failure = RedKeyError("RedKey failed at this request; nothing of it was recorded.", code="internal_error")
    failure.__cause__ = cause
    return failure
