"""Turn errors into problem replies: RFC 9457 JSON with a stable code and a sentence that says what to do.

Every error class of RedKey has a status here. Any other exception is a bug: its reply contains no details, and the
caller of `answer` logs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from redkey.commands.decision import Refused, invalid
from redkey.errors import (
    ContentRefused,
    Finding,
    JsonRefused,
    NetworkAway,
    NetworkRefused,
    RedKeyError,
    StoreError,
    UpgradeNeeded,
    WireRefused,
)
from redkey.services.failures import Unavailable
from redkey.services.problems import describe
from redkey.services.use_case import InsufficientScope

MEDIA_TYPE = "application/problem+json"


class Declined(Refused):
    """A refusal by the HTTP layer itself, with its headers."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        findings: Sequence[Finding] = (),
    ) -> None:
        super().__init__(status, code, detail, findings=findings)
        self.headers = dict(headers or {})


_RETRY_SECONDS = 1

_encode = msgspec.json.Encoder().encode


class Answer(msgspec.Struct, frozen=True):
    """A problem reply, ready to send."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def answer(error: BaseException) -> Answer:
    """Return the problem reply for an error."""
    refused = _refused(error)
    problem = describe(refused)
    document = msgspec.to_builtins(problem) | refused.members if refused.members else problem
    headers = [(name.lower().encode(), value.encode()) for name, value in _headers(refused).items()]
    return Answer(refused.status, headers, _encode(document))


def _headers(refused: Refused) -> dict[str, str]:
    headers = dict(refused.headers) if isinstance(refused, Declined) else {}
    if isinstance(refused, InsufficientScope):
        headers["www-authenticate"] = f'Bearer error="insufficient_scope", scope="{" ".join(refused.scopes)}"'
    if refused.status == 409:
        # Some SDKs retry a 409; here a retry would meet the same state.
        headers.setdefault("x-should-retry", "false")
    if refused.status in (429, 503):
        headers.setdefault("retry-after", str(refused.retry_seconds or _RETRY_SECONDS))
    return headers


def _refused(error: BaseException) -> Refused:
    if isinstance(error, Refused):
        return error
    if isinstance(error, JsonRefused):
        status = 413 if error.code == "json_too_large" else 400
        return Declined(status, error.code, error.message, findings=error.findings())
    if isinstance(error, WireRefused):
        return invalid(error.findings())
    if isinstance(error, ContentRefused):
        return Declined(409 if error.code == "content_pinned" else 422, error.code, error.message)
    if isinstance(error, NetworkAway | NetworkRefused):
        return Declined(
            503, "order_unavailable", "The network of this ledger did not give a usable answer; retry later."
        )
    if isinstance(error, Unavailable | StoreError | UpgradeNeeded):
        return Declined(503, error.code, _public(error))
    return Declined(500, "internal_error", "The server failed because of a bug; its log has the details.")


def _public(error: RedKeyError) -> str:
    """Return what a caller may learn of an internal error: its kind, without paths or addresses."""
    return (type(error).__doc__ or "The store cannot be used.").strip().split("\n")[0]
