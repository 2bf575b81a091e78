"""Rows for use cases: one entity by its key, the place of a cursor, a page of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from redkey.commands.decision import Refused, not_found, wrong
from redkey.ledger.ports import Row
from redkey.readmodel.rows import entity
from redkey.services.caller import Caller
from redkey.shapes.fields import Page, PageQuery

Item = TypeVar("Item")
Entity = TypeVar("Entity")


def read_entity(caller: Caller, kind: type[Entity], key: str) -> Entity:
    """Return the entity under a key; not found if the workspace has none."""
    name = kind.__name__.lower()
    row = caller.means.store.row(caller.topic, name, key)
    if row is None:
        raise not_found(name)
    found: Entity = entity(row)
    return found


def place_after(asked: PageQuery) -> tuple[int, str]:
    """Return the place in a list that a cursor names."""
    if not asked.after:
        return 0, ""
    position, _, key = asked.after.partition(".")
    if not position.isascii() or not position.isdecimal() or len(position) > 18:
        raise bad_cursor()
    return int(position), key


def sequence_after(asked: PageQuery) -> int:
    """Return the sequence that a cursor names, 0 without one."""
    if asked.after and not (asked.after.isascii() and asked.after.isdecimal() and len(asked.after) <= 15):
        raise bad_cursor()
    return int(asked.after or 0)


def bad_cursor() -> Refused:
    """Return the refusal of a cursor that no page gave."""
    return wrong("cursor_invalid", "/after", "a cursor must be the `next` of an earlier page")


def page_by_key(caller: Caller, kind: str, asked: PageQuery, show: Callable[..., Item]) -> Page[Item]:
    """Return a page of all rows of a kind in the workspace, by their keys; `show` makes an item of an entity."""
    rows = caller.means.store.rows(caller.topic, kind, None, (0, place_after(asked)[1]), asked.limit)
    following = f"0.{rows[-1].key}" if len(rows) == asked.limit else None
    return Page(tuple(show(entity(row)) for row in rows), following)


def page_by_place(
    caller: Caller, kind: str, listed: str | None, asked: PageQuery, show: Callable[..., Item]
) -> Page[Item]:
    """Return a page of one list of rows, in the order of their places; without a list, of all rows by their keys."""
    rows = caller.means.store.rows(caller.topic, kind, listed, place_after(asked), asked.limit)
    return Page(tuple(show(entity(row)) for row in rows), cursor_of(rows[-1]) if len(rows) == asked.limit else None)


def cursor_of(row: Row) -> str:
    """Return the cursor of what comes after a row."""
    return f"{row.position}.{row.key}"
