"""What messages of Weave v1 say, by the names that the runtime has for it since v0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Names of v0 under `codex`, and of v1 at the top of the payload.
NAMES = {"conversation_id": "context_id", "conversation_owner": "owner_id", "parent_message_id": "parent_message_id"}


def given(value: Any) -> str | None:
    """Text that says something; None when it is absent, blank or no text."""
    return value.strip() or None if isinstance(value, str) else None


def codex_of(payload: Mapping[str, Any], meta: Any) -> dict[str, Any]:
    """What a v1 message says about its conversation, by the names of v0."""
    found = {old: given(payload.get(new)) for old, new in NAMES.items()}
    found |= {"kind": given(payload.get("kind")), "sender_name": given(payload.get("sender_name"))}
    weave = meta.get("weave") if isinstance(meta, dict) else None
    if isinstance(weave, dict):
        found["sender_name"] = given(weave.get("origin_src_name")) or found["sender_name"]
    return {name: value for name, value in found.items() if value is not None and (name, value) != ("kind", "user")}


def context_of(actions: Sequence[dict[str, Any]], context: Any) -> dict[str, Any]:
    """The same for actions: of their context, and the kind of the first message among them."""
    fields = context if isinstance(context, dict) else {}
    kind = next((action.get("kind") for action in actions if action.get("type") == "message"), "control")
    return codex_of({**fields, "kind": kind}, None)


def action_text(actions: Sequence[dict[str, Any]]) -> str:
    """Actions as a v0 agent reads them: texts, and commands as lines with a slash."""
    lines = [
        str(action.get("text", ""))
        if action.get("type") == "message"
        else f"/{action.get('command')} {action.get('args') or ''}".strip()
        for action in actions
    ]
    return "\n\n".join(lines)
