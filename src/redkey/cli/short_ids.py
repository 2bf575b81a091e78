"""Short ids: people type the first characters of an id, and tables on a terminal show no more than are needed.

The whole id is looked up by the server, so that a beginning is unique in the workspace and not only in a table. What is
piped or printed as JSON has whole ids.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from redkey.errors import NotFound

if TYPE_CHECKING:
    from redkey.client import RedKey

# Parameters of commands that are ids, and how such ids begin.
_KINDS = {"task_id": "task_", "ref_task_id": "task_", "workflow_id": "wf_", "gate_id": "gate_", "key_id": "key_"}
_WHOLE = 26
_LEAST = 8
_ID = re.compile(r"(?:task|wf|gate|agt|key|clm|evt|msg|art|def|whk)_(?P<rest>[0-9A-Z]{26})")
# What an id names, by how it begins, and the command that shows it.
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
}


def resolve_ids(rk: RedKey, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a command with whole ids in place of beginnings."""
    for name, start in _KINDS.items():
        value = options.get(name)
        if isinstance(value, str) and value:
            options[name] = whole_id(rk, value, start)
    return options


def whole_id(rk: RedKey, given: str, start: str) -> str:
    """The id that a beginning means; what means none is left as it is, and the server says so."""
    refuse_other_kind(given, start)
    rest = given.removeprefix(start)
    if "_" in rest or not rest or len(rest) >= _WHOLE:
        return given
    wanted = start + (rest if rest.isupper() or rest.isdigit() else rest.upper())
    found, complete = _find(rk, wanted, start)
    if len(found) > 1:
        more = "" if complete else ", ..."
        raise click.UsageError(f"{given} is the beginning of several ids: {', '.join(found)}{more}")
    return found[0] if found else given


def refuse_other_kind(given: str, start: str) -> None:
    """Refuse an id of another kind than is wanted, and name the command that takes it."""
    for prefix, (what, shows) in _NAMES.items():
        if prefix != start and given.startswith(prefix) and given != prefix:
            meant = f"; see it with: {shows} {given}" if shows else ""
            raise click.UsageError(f"{given} is the id of {_a(what)}, and {_a(_NAMES[start][0])} is wanted{meant}")


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _find(rk: RedKey, wanted: str, start: str) -> tuple[list[str], bool]:
    if start == "key_":
        # Keys are few, and only admins may see them.
        keys = (one.key_id for place in rk.workspaces.list() for one in rk.keys.list(place.workspace_id))
        return [key_id for key_id in keys if key_id.startswith(wanted)], True
    try:
        found = rk.server.find_ids(wanted)
    except NotFound:
        # A server of an older version.
        return [], True
    return list(found.items), found.complete


def shorten(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Rows with ids cut to eight characters, or to as many more as tell those of one column apart."""
    columns = [_shorten_column(column) for column in zip(*rows, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def _shorten_column(cells: Sequence[str]) -> Sequence[str]:
    ids = {cell: found["rest"] for cell in cells if (found := _ID.fullmatch(cell)) is not None}
    if not ids:
        return cells
    length = next(n for n in range(_LEAST, _WHOLE + 1) if len({rest[:n] for rest in ids.values()}) == len(ids))
    return [ids[cell][:length] if cell in ids else cell for cell in cells]
