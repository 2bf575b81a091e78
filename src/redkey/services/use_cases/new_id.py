"""The ids of new queues and roles: chosen by the caller, else made of the name."""

from __future__ import annotations

from typing import Literal

from redkey.commands.decision import wrong
from redkey.wire.a2a_card import slug
from redkey.wire.names import QUEUE_ID, QUEUE_NAME_LIMIT, ROLE_ID, ROLE_NAME_LIMIT, id_for, queue_id, role_id

_KINDS = {"queue": (queue_id, QUEUE_ID, QUEUE_NAME_LIMIT), "role": (role_id, ROLE_ID, ROLE_NAME_LIMIT)}


def new_id(kind: Literal["queue", "role"], chosen: str | None, name: str) -> str:
    """Return the id of a new queue or role; Refused if it cannot be one."""
    complete, pattern, longest = _KINDS[kind]
    named = complete(chosen or id_for(name, slug(name), longest))
    if not pattern.fullmatch(named):
        pointer = "/id" if chosen else "/name"
        text = (
            f"an id has 1 to {longest} letters, digits, dots, dashes and underscores, the first one a letter or digit"
        )
        raise wrong("queue_invalid", pointer, text) if kind == "queue" else wrong("role_invalid", pointer, text)
    return named
