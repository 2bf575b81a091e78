"""Problems: a refusal as callers see it, with a stable code and one sentence that an agent can act on."""

from __future__ import annotations

from http import HTTPStatus

from redkey.commands.decision import Refused
from redkey.shapes.problem import Problem, Wrong

# Where problem types are explained: by their code where they have a story of their own, else by their status.
TYPES = "/docs#"

# What a caller can do about a refusal, by code, else by status.
ADVICE = {
    "lease_lost": "Stop working on this task and ask for the next available one.",
    "already_terminal": "Leave the task as it is; create a new one, or retry it if it failed or was cancelled.",
    "credits_exhausted": "Ask an operator to grant credits; claims that are running may finish.",
    "idempotency_key_reused": "Send the first body again for the first answer, or take a new key for a new request.",
    "idempotency_key_expired": "Look at what the first request did (eventId); take a new key for a new request.",
    "missing_artifact": "Add the named artifacts to this claim, then complete it again.",
    "logins_limited": "Use a right key or secret, or wait as long as Retry-After says; right ones are always let in.",
    "slug_taken": "Choose another slug, or update the agent that has it.",
    "content_pinned": "Leave it: the ledger cannot be replayed without this content.",
    "content_not_found": "Check the hash; content is kept per workspace, and erased content does not come back.",
    "insufficient_scope": "Use a key that has one of the named scopes, or ask an admin for one.",
    "invalid_scope": "Ask for scopes that the key has or includes, with one space between them.",
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
        errors=tuple(Wrong(one.code, one.pointer, one.message) for one in refused.findings() if one.pointer),
    )
