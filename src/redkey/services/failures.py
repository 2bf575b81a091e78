"""Why a request was not recorded, as its caller is told."""

from __future__ import annotations

from redkey.errors import CommitInDoubt, RedKeyError, StoreFull, StorePoisoned, WriterBusy


class Unavailable(RedKeyError):
    """The store cannot take the request now; send it again with the same idempotency key."""

    code = "unavailable"


def store_failure(cause: BaseException | None) -> RedKeyError:
    """What callers are told when the store did not take their requests; a code of its own where they can act on it."""
    if isinstance(cause, StoreFull | WriterBusy | StorePoisoned | CommitInDoubt):
        return type(cause)(cause.message)
    failure = Unavailable()
    failure.__cause__ = cause
    return failure


def internal_failure(cause: Exception) -> RedKeyError:
    """What a caller is told whose request cannot be done: the reason, or that the fault is RedKey's."""
    if isinstance(cause, RedKeyError):
        return cause
    failure = RedKeyError("RedKey failed at this request; nothing of it was recorded.", code="internal_error")
    failure.__cause__ = cause
    return failure
