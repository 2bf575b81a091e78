"""What deciding gives: drafts to record, or a record that is the answer already, or an answer that writes nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.commands.draft import Draft
from redkey.errors import RedKeyError


class Decision(msgspec.Struct):
    """Drafts to append; or `repeat`, the sequence of the event that answers; or `answer`, which nothing records."""

    drafts: list[Draft] = []
    repeat: int = 0
    answer: dict[str, Any] | None = None


class Refused(RedKeyError):
    """The command is not allowed, and nothing is recorded."""

    code = "refused"

    def __init__(self, status: int, code: str, detail: str, pointer: str = "", **members: object) -> None:
        super().__init__(detail, code=code, pointer=pointer)
        self.status = status
        self.members = members


def not_found(what: str) -> Refused:
    """One answer for what is missing and for what belongs to another workspace: it tells nothing of either."""
    return Refused(404, f"{what}_not_found", f"There is no such {what} in this workspace.")


def key_reused() -> Refused:
    """A key that was used for another request."""
    detail = "This idempotency key was used with another body; use a new key for a new request."
    return Refused(422, "idempotency_key_reused", detail)
