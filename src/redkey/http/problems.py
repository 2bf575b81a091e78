"""Problems: what is refused, as RFC 9457 JSON with a stable code and one sentence that an agent can act on.

Every error of RedKey's tree has a status here. What is not in the tree is a fault of ours: it is answered without
a word of its inside and logged by whoever calls this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import msgspec

from redkey.commands.decision import Refused
from redkey.errors import (
    ContentRefused,
    Finding,
    JsonRefused,
    RedKeyError,
    StoreError,
    UpgradeNeeded,
    WireRefused,
)
from redkey.services.coordinator import Unavailable

MEDIA_TYPE = "application/problem+json"
# Where problem types are explained: by their code where they have a story of their own, else by their status.
TYPES = "/docs#"


class Wrong(msgspec.Struct, frozen=True, rename="camel"):
    """One thing wrong with a request: where (a JSON pointer into the body, or a parameter's name) and what."""

    code: str
    pointer: str
    message: str


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """Why a request was refused, and what to do next."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    advice: str
    errors: list[Wrong] = []


class Declined(Refused):
    """A refusal of the HTTP door itself, with the headers that go with it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        findings: Sequence[Finding] = (),
    ) -> None:
        super().__init__(status, code, detail, findings[0].pointer if findings else "")
        self.headers = dict(headers or {})
        self.wrong = tuple(findings)

    def findings(self) -> Sequence[Finding]:
        return self.wrong or super().findings()


def invalid(findings: Sequence[Finding]) -> Declined:
    """Everything wrong with a body or query, at once."""
    count = len(findings)
    detail = findings[0].message if count == 1 else f"{count} things are wrong with the request; see errors."
    return Declined(422, "invalid", detail, findings=findings)


# What a caller can do about a refusal, by code, else by status.
ADVICE = {
    "lease_lost": "Stop working on this task and ask for the next available one.",
    "already_terminal": "Leave the task as it is; create a new one, or retry it if it failed or was cancelled.",
    "credits_exhausted": "Ask an operator to grant credits; claims that are running may finish.",
    "idempotency_key_reused": "Send the first body again for the first answer, or take a new key for a new request.",
    "missing_artifact": "Add the named artifacts to this claim, then complete it again.",
    "logins_limited": "Use a right key or secret, or wait as long as Retry-After says; right ones are always let in.",
    "slug_taken": "Choose another slug, or update the agent that has it.",
    "content_pinned": "Leave it: the ledger cannot be replayed without this content.",
    "content_not_found": "Check the hash; content is kept per workspace, and erased content does not come back.",
    "insufficient_scope": "Use a key that has one of the named scopes, or ask an admin for one.",
    "cost_limited": "Wait as long as Retry-After says; send less at once.",
    "answer_erased": "Read the current state; take a new key if the request is to be done once more.",
    "last_operator_key": "Make another operator key in this workspace, or let another operator revoke this one.",
    "last_admin_key": "Make another admin key in this workspace, or let an operator revoke this one.",
    "secret_detected": "Take the secret out and send a reference to it instead; what is recorded cannot be unsaid.",
    "internal_error": "Send the request again with the same Idempotency-Key; if it goes on, tell the operator.",
    "upgrade_needed": "Ask the operator to run a newer RedKey on this workspace.",
    "store_full": "Ask the operator to make room on the server's disk, then send the request again.",
    "writer_busy": "Send the request again after Retry-After seconds; if it goes on, ask the operator to look at the "
    "other server processes of this data directory: one may be stopped while it writes.",
    "method_not_allowed": "Use one of the methods in the Allow header.",
}
ADVICE_BY_STATUS = {
    400: "Send one JSON document in UTF-8 with content-type application/json.",
    401: "Send the header Authorization: Bearer with an API key or an access token.",
    402: "Ask an operator to grant credits.",
    403: "Use a key with the needed scope.",
    404: "Check the id; it must be one of this workspace.",
    405: "Use one of the methods in the Allow header.",
    408: "Send the body faster, or in smaller requests.",
    409: "Read the current state before deciding what to do; sending the same request again will not help.",
    411: "Send a Content-Length or a chunked body.",
    413: "Send less; large bodies go to PUT /content and are named by their hash.",
    415: "Send the body with content-type application/json.",
    422: "Mend what errors lists, then send the request again.",
    429: "Wait as long as Retry-After says.",
    503: "Send the request again after Retry-After seconds, with the same Idempotency-Key.",
}
_RETRY_SECONDS = "1"

_encode = msgspec.json.Encoder().encode


class Answer(msgspec.Struct, frozen=True):
    """A problem ready to be sent."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def answer(error: BaseException) -> Answer:
    """The problem that an error is to the caller."""
    refused = _refused(error)
    problem = describe(refused)
    document = msgspec.to_builtins(problem) | refused.members if refused.members else problem
    headers = [(name.lower().encode(), value.encode()) for name, value in _headers(refused).items()]
    return Answer(refused.status, headers, _encode(document))


def describe(refused: Refused) -> Problem:
    """A refusal in the shape of RFC 9457."""
    status, code = refused.status, refused.code
    return Problem(
        type=TYPES + (code if code in ADVICE else str(status)),
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=refused.message,
        advice=ADVICE.get(code) or ADVICE_BY_STATUS.get(status, "Tell the operator."),
        errors=[Wrong(one.code, one.pointer, one.message) for one in refused.findings() if one.pointer],
    )


def _headers(refused: Refused) -> dict[str, str]:
    headers = dict(refused.headers) if isinstance(refused, Declined) else {}
    if refused.status == 409:
        # Some SDKs retry a conflict by themselves; here the same request meets the same state again.
        headers.setdefault("x-should-retry", "false")
    if refused.status in (429, 503):
        headers.setdefault("retry-after", _RETRY_SECONDS)
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
    if isinstance(error, Unavailable | StoreError | UpgradeNeeded):
        return Declined(503, error.code, _public(error))
    return Declined(500, "internal_error", "The server made a mistake.")


def _public(error: RedKeyError) -> str:
    """What a caller may know of trouble inside: its kind, never paths or addresses."""
    return (type(error).__doc__ or "The store cannot be used.").strip().split("\n")[0]
