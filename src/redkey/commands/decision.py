"""The result of a decision: drafts to record, an earlier record that is the answer, or an answer without a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from redkey.commands.draft import Draft
from redkey.errors import Finding, RedKeyError

KEY_EXPIRED = "idempotency_key_expired"
KEY_REUSED = "idempotency_key_reused"


class Decision(msgspec.Struct):
    """Drafts to append; or `repeat`, the sequence of the event that answers; or `answer`, which is not recorded."""

    drafts: list[Draft] = []
    repeat: int = 0
    answer: dict[str, Any] | None = None


class Refused(RedKeyError):
    """The command is not allowed, and nothing is recorded."""

    code = "refused"

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        pointer: str = "",
        *,
        findings: Sequence[Finding] = (),
        retry_seconds: int = 0,
        **members: object,
    ) -> None:
        """`findings` lists all errors of the request; `retry_seconds` says when it may succeed."""
        super().__init__(detail, code=code, pointer=pointer or (findings[0].pointer if findings else ""))
        self.status, self.retry_seconds = status, retry_seconds
        self.members = members
        self._findings = tuple(findings)

    def findings(self) -> Sequence[Finding]:
        return self._findings or super().findings()


def wrong(code: str, pointer: str, message: str) -> Refused:
    """Refuse a request for one error, with its own code."""
    detail = f"{message[:1].upper()}{message[1:]}."
    return Refused(422, code, detail, findings=[Finding(code, pointer, message)])


def invalid(findings: Sequence[Finding]) -> Refused:
    """Refuse a request with all its errors at once."""
    count = len(findings)
    detail = findings[0].message if count == 1 else f"The request has {count} errors; see `errors`."
    return Refused(422, "invalid", detail, findings=findings)


def not_found(what: str) -> Refused:
    """The same answer for a missing thing and for one of another workspace, so that it reveals neither."""
    return Refused(404, f"{what}_not_found", f"There is no such {what} in this workspace.")


def key_reused() -> Refused:
    """Refuse an idempotency key that was used for another request."""
    detail = "This idempotency key was used with another body; use a new key for a new request."
    return Refused(422, KEY_REUSED, detail)


def key_expired(event_id: str = "") -> Refused:
    """Refuse a key whose request is older than the idempotency window; `event_id` names the event it recorded."""
    detail = "This idempotency key was used before, and its answer is no longer kept."
    if not event_id:
        return Refused(410, KEY_EXPIRED, detail)
    return Refused(410, KEY_EXPIRED, f"{detail} The request is event {event_id}.", eventId=event_id)
