"""Inbox messages: which ones an agent may send, and how their priority affects its next task.

Priorities of seed 000: 1 stops the agent until the message is read, 2 must be read before the next task (it is in that
task's prompt), 3 is information (it is in the prompt if there is room).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from redkey.errors import JsonRefused, OutputRefused
from redkey.wire.decode import decode

OUTBOX_LIMIT: Final = 20
_LINE_BYTES: Final = 64 * 1024

Recipient = Annotated[str, msgspec.Meta(pattern="^(?:roles\\.|role_|agt_)?[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class Mail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message to send: the payload of seed 000's inbox wire."""

    to_agent: Recipient
    subject: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    body: Annotated[str, msgspec.Meta(max_length=4000)] = ""
    message_type: Literal["task.feedback", "status.update", "task.blocked", "exec.gate", "question", "info"] = "info"
    priority: Annotated[int, msgspec.Meta(ge=1, le=3)] = 3
    action_required: bool = False
    ref_task_id: str | None = None


# Types that an agent may send itself; blocks and gates follow from its recommendation and its card's rules.
AGENTS_OWN: Final = frozenset({"task.feedback", "status.update", "question", "info"})


def read_mail(value: Any) -> Mail:
    """Read one message of an agent; OutputRefused if it is invalid or of a type that agents may not send."""
    try:
        mail = msgspec.convert(value, Mail)
    except msgspec.ValidationError as cause:
        raise OutputRefused(f"a message of the outbox is invalid: {cause}", code="outbox_invalid") from cause
    if mail.message_type not in AGENTS_OWN:
        text = f"an agent sends {', '.join(sorted(AGENTS_OWN))}; {mail.message_type} follows from recommending escalate"
        raise OutputRefused(text, code="outbox_invalid")
    return mail


def read_outbox(data: bytes) -> tuple[Mail, ...]:
    """Read an outbox file, one JSON object per line."""
    lines = [line for line in data.splitlines() if line.strip()]
    if len(lines) > OUTBOX_LIMIT:
        raise OutputRefused(
            f"a step sends at most {OUTBOX_LIMIT} messages; this has {len(lines)}", code="outbox_invalid"
        )
    try:
        return tuple(read_mail(decode(line, size_limit=_LINE_BYTES)) for line in lines)
    except JsonRefused as cause:
        raise OutputRefused(f"the outbox is not lines of JSON: {cause.message}", code="outbox_invalid") from cause
