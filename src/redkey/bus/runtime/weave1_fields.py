"""The fields of Weave v1 messages under the names that the runtime uses, which are those of v0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# The types that v1 agents send to each other besides `message.send`.
CARRIED = frozenset({"action.submit", "action.result", "message.created", "task.updated", "task.done", "relay.done"})

# Names of v0 under `codex`, and of v1 at the top of the payload.
NAMES = {"conversation_id": "context_id", "conversation_owner": "owner_id", "parent_message_id": "parent_message_id"}


def given(value: Any) -> str | None:
    """Strip a string; None if it is absent, blank or no string."""
    return value.strip() or None if isinstance(value, str) else None


def codex_of(payload: Mapping[str, Any], meta: Any) -> dict[str, Any]:
    """The conversation fields of a v1 message under their v0 names."""
    fields = {old: given(payload.get(new)) for old, new in NAMES.items()}
    fields |= {"kind": given(payload.get("kind")), "sender_name": given(payload.get("sender_name"))}
    weave = meta.get("weave") if isinstance(meta, dict) else None
    if isinstance(weave, dict):
        fields["sender_name"] = given(weave.get("origin_src_name")) or fields["sender_name"]
    return {name: value for name, value in fields.items() if value is not None and (name, value) != ("kind", "user")}


def add_sender_name(meta: Any, name: str | None) -> Any:
    """Add the sender's name to the `meta` of a message, unless it has one; v1 clients read the name there only."""
    fields = meta if isinstance(meta, dict) else {}
    weave = fields.get("weave", {})
    if name is None or not isinstance(weave, dict) or given(weave.get("origin_src_name")):
        return meta
    return {**fields, "weave": {**weave, "origin_src_name": name}}


def action_text(actions: Sequence[dict[str, Any]]) -> str:
    """Actions as text for a v0 agent: message texts, and commands as lines with a slash."""
    lines = [
        str(action.get("text", ""))
        if action.get("type") == "message"
        else f"/{action.get('command')} {action.get('args') or ''}".strip()
        for action in actions
    ]
    return "\n\n".join(lines)
