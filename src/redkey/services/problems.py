"""Problems: refusals as callers see them, with a stable code and one sentence on what to do next."""

from __future__ import annotations

from http import HTTPStatus

from redkey.commands.decision import Refused
from redkey.shapes.problem import Problem, Wrong

# The page that explains problem types: by code if ADVICE has it, else by status.
TYPES = "/docs#"

# What a caller can do about a refusal, by code, else by status.
ADVICE = {
    "lease_lost": "Stop working on this task and ask for the next available one.",
    "already_terminal": "Leave the task as it is; create a new one, or retry it if it failed or was cancelled.",
    "credits_exhausted": "Ask an operator to grant credits; claims that are running may finish.",
    "idempotency_key_reused": "Send the first body again for the first answer, or use a new key for a new request.",
    "idempotency_key_expired": "Look at what the first request did (eventId); use a new key for a new request.",
    "missing_artifact": "Complete again with the named artifacts (`artifacts`, or `output` with a field of that name), "
    "or add them before with POST /claims/{claimId}/artifacts.",
    "unverified_artifact": "Put the bytes with PUT /content and add the artifact again under its artifactId; or let an "
    "admin allow it: redkey workspace policy --unverified-outputs allow.",
    "logins_limited": "Use a valid key or secret, or wait as long as Retry-After says; valid ones are never limited.",
    "own_gate": "Decide with another admin key or as one of the gate's approvers; an admin may allow self-approval by "
    "PATCH /workspaces/{workspaceId}/policy (redkey workspace policy --self-approval).",
    "slug_taken": "Choose another slug, or update the agent that has it.",
    "content_pinned": "Keep it: the ledger cannot be replayed without this content.",
    "content_not_found": "Check the hash; content is kept per workspace, and erased content does not come back.",
    "insufficient_scope": "Use a key that has one of the named scopes, or ask an admin for one.",
    "invalid_scope": "Ask for scopes that the key has or includes, with one space between them.",
    "client_unknown": "Start the login from the program again; a program registers itself at POST /oauth/register.",
    "redirect_uri_mismatch": "Start the login from the program again; if it fails again, do not use that program.",
    "invalid_redirect_uri": "Register https addresses, http ones on loopback, or a scheme of the program.",
    "invalid_client_metadata": "Register a public client: no secret, codes and refresh tokens alone.",
    "invalid_grant": "Start the login again.",
    "login_expired": "Start the login again, in one browser, within ten minutes.",
    "login_code_invalid": "Check the address and the code, or get a new code from an admin (redkey person code).",
    "not_invited": "Ask an admin of the workspace to invite this address: redkey person invite.",
    "identity_provider_failed": "Try again; if it keeps failing, log in with a one-time code, or tell the operator.",
    "origin_refused": "Open the login page of the server itself.",
    "signup_disabled": "Ask the operator for a workspace, or to set signup.enabled.",
    "signups_limited": "Wait as long as Retry-After says, or ask the operator for a workspace.",
    "codes_limited": "Wait as long as Retry-After says; a code that was sent before is still valid.",
    "person_exists": "Create a new code: redkey person code PERSON.",
    "address_erased": "Remove the person and invite the address again.",
    "address_limit": "Remove the address from another workspace first, or use another one.",
    "cost_limited": "Wait as long as Retry-After says; send less at once.",
    "answer_erased": "Read the current state; to run the request once more, use a new key.",
    "last_operator_key": "Create another operator key in this workspace, or ask another operator to revoke this one.",
    "last_admin_key": "Create another admin key in this workspace, or ask an operator to revoke this one.",
    "secret_detected": "Remove the secret and send a reference to it instead; what is recorded cannot be removed.",
    "internal_error": "Retry with the same Idempotency-Key; if it keeps failing, tell the operator.",
    "upgrade_needed": "Ask the operator to run a newer RedKey on this workspace.",
    "store_full": "Ask the operator to free space on the server's disk, then retry.",
    "writer_busy": "Retry after Retry-After seconds; if it keeps failing, ask the operator to look at the other server "
    "processes of this data directory: one may have been suspended while it was writing.",
    "commit_in_doubt": "Retry after Retry-After seconds with the same Idempotency-Key; the answer then says what was "
    "recorded.",
    "network_balance_empty": "Ask the operator to put money on the server's account, then retry with the same key.",
    "network_budget_exhausted": "Ask the operator to raise the budget, or retry in the next hour or day.",
    "network_fee_refused": "Ask the operator to look at the fee limits and the topic; the server's log says more.",
    "network_not_configured": "Set the table [hedera] and restart; redkey hedera standin needs no account.",
    "order_lost": "Read the current state: another request was ordered first.",
    "order_in_doubt": "Retry after Retry-After seconds with the same Idempotency-Key; the answer then says what was "
    "recorded.",
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
    409: "Read the current state before deciding what to do; the same request will fail again.",
    411: "Send a Content-Length or a chunked body.",
    413: "Send less; large bodies go to PUT /content and are named by their hash.",
    415: "Send the body with content-type application/json.",
    422: "Fix the fields listed under `errors` and retry.",
    429: "Wait as long as Retry-After says.",
    431: "Send fewer or shorter headers.",
    501: "Send the body with a Content-Length or chunked, without another transfer encoding.",
    503: "Retry after Retry-After seconds, with the same Idempotency-Key.",
    505: "Send the request in HTTP/1.1.",
}


def describe(refused: Refused) -> Problem:
    """Turn a refusal into a problem of RFC 9457."""
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
