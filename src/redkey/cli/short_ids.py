"""Short ids: people type the first characters of an id, and tables on a terminal show as few as are unique.

The server looks up the whole id, so that a prefix is unique in the workspace and not only in a table. Piped output and
JSON have whole ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from redkey.errors import NotFound
from redkey.wire.names import QUEUE_ID, QUEUE_NAME_LIMIT, ROLE_ID, ROLE_NAME_LIMIT, id_for, queue_id, role_id

if TYPE_CHECKING:
    from redkey.client import RedKey

# Parameters of commands that are ids, and the prefixes of such ids.
_KINDS = {"task_id": "task_", "ref_task_id": "task_", "workflow_id": "wf_", "gate_id": "gate_", "key_id": "key_"}
_KINDS |= {"claim_id": "clm_", "message_id": "msg_", "webhook_id": "whk_", "event_id": "evt_"}
_KINDS |= {"parent_task_id": "task_"}
_WHOLE = 26
_LEAST = 8
_ID = re.compile(r"(?:task|wf|gate|agt|key|clm|msg|art|def|whk|evt)_(?P<rest>[0-9A-Z]{26})")
_IDS_WITHIN = re.compile(_ID.pattern.replace("(?P<rest>", "(") + r"(?![0-9A-Z])")
# Parameters that name queues and roles: how to turn a name into an id, the pattern of an id, and its maximum length.
_NAMED = (
    (("queue", "queue_id"), queue_id, QUEUE_ID, QUEUE_NAME_LIMIT),
    (("role", "roles", "role_id"), role_id, ROLE_ID, ROLE_NAME_LIMIT),
)
# By the prefix of an id: the kind of object, and the command that shows it.
_NAMES = {
    "task_": ("task", "redkey task show"),
    "wf_": ("workflow", "redkey workflow show"),
    "gate_": ("gate", "redkey gate show"),
    "agt_": ("agent", "redkey agent show"),
    "evt_": ("event", "redkey events show"),
    "clm_": ("claim", ""),
    "key_": ("key", ""),
    "art_": ("artifact", ""),
    "msg_": ("message", ""),
    "whk_": ("webhook", "redkey webhook show"),
}


def resolve_ids(rk: RedKey, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a command with whole ids, and with the ids of queues and roles instead of names."""
    for names, whole, pattern, longest in _NAMED:
        for name in names:
            value = options.get(name)
            if isinstance(value, str):
                options[name] = _id_of_name(value, whole, pattern, longest)
            elif isinstance(value, tuple):
                options[name] = tuple(_id_of_name(one, whole, pattern, longest) for one in value)
    for name, start in _KINDS.items():
        value = options.get(name)
        if isinstance(value, str) and value:
            options[name] = whole_id(rk, value, start)
    return options


def _id_of_name(name: str, whole: Callable[[str], str], pattern: re.Pattern[str], longest: int) -> str:
    """Return an id unchanged; turn a name such as `Lead Writer` into its id."""
    if not name or pattern.fullmatch(whole(name)):
        return name
    from redkey.wire.a2a_card import slug

    return id_for(name, slug(name), longest)


def whole_id(rk: RedKey, given: str, start: str) -> str:
    """Return the id that a prefix matches; an unknown one is left as it is, for the server to refuse."""
    refuse_other_kind(given, start)
    rest = given.removeprefix(start)
    if "_" in rest or not rest or len(rest) >= _WHOLE:
        return given
    wanted = start + (rest if rest.isupper() or rest.isdigit() else rest.upper())
    found, complete = _find(rk, wanted, start)
    if len(found) > 1:
        more = "" if complete else ", ..."
        raise click.UsageError(f"{given} is the beginning of several ids: {', '.join(found)}{more}; give more of it")
    return found[0] if found else given


def refuse_other_kind(given: str, start: str) -> None:
    """Refuse an id of another kind, and name the command that takes it."""
    for prefix, (what, shows) in _NAMES.items():
        if prefix != start and given.startswith(prefix) and given != prefix:
            meant = f"; see it with: {shows} {given}" if shows else ""
            raise click.UsageError(f"{given} is the id of {_a(what)}, and {_a(_NAMES[start][0])} is wanted{meant}")


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _find(rk: RedKey, wanted: str, start: str) -> tuple[list[str], bool]:
    if start == "key_":
        # There are few keys, and only admins may list them.
        keys = (one.key_id for place in rk.workspaces.list() for one in rk.keys.list(place.workspace_id))
        return [key_id for key_id in keys if key_id.startswith(wanted)], True
    try:
        found = rk.server.find_ids(wanted)
    except NotFound:
        # A server of an older version.
        return [], True
    return list(found.items), found.complete


def shorten(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return rows with ids cut to eight characters, or to as many as are unique in a column."""
    columns = [_shorten_column(column) for column in zip(*rows, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def shorten_within(text: str) -> str:
    """Return a text with the ids in it cut to eight characters."""
    return _IDS_WITHIN.sub(lambda found: found[1][:_LEAST], text)


def _shorten_column(cells: Sequence[str]) -> Sequence[str]:
    ids = {cell: found["rest"] for cell in cells if (found := _ID.fullmatch(cell)) is not None}
    if not ids:
        return cells
    length = next(n for n in range(_LEAST, _WHOLE + 1) if len({rest[:n] for rest in ids.values()}) == len(ids))
    return [ids[cell][:length] if cell in ids else cell for cell in cells]
