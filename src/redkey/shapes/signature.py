"""Signatures: what callers in Python and on the command line give to an operation, read off its declaration."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta

from redkey.shapes.fields import SEVERAL
from redkey.shapes.operation import Operation

# The names that Python callers use where the API has another one.
_NAMES = {
    "agent_card": "card",
    "agent_card_url": "card_url",
    "at": "at_sequence",
    "from_": "since",
    "queue_id": "queue",
    "role_id": "role",
}
# What the API takes under two names: the key of a request is a header too, and `to` is a recipient too.
_LEFT_OUT = {"idempotency_key", "to_agent"}


class Parameter(NamedTuple):
    """One parameter of an operation."""

    name: str
    # Its name in the JSON of the body, or in the query string; in the path, its name there.
    wire: str
    place: Literal["path", "body", "query"]
    kind: Any
    # NODEFAULT when it must be given.
    default: Any
    by_position: bool
    description: str

    @property
    def required(self) -> bool:
        return self.default is NODEFAULT

    @property
    def is_several(self) -> bool:
        """True for words with commas between."""
        return get_origin(self.kind) is Annotated and SEVERAL in get_args(self.kind)

    @property
    def types(self) -> tuple[Any, ...]:
        """What it may be, without None and bounds."""
        return plain_types(self.kind)


@cache
def parameters(operation: Operation) -> tuple[Parameter, ...]:
    """The parameters in the order of a call: of the path, by position, by name."""
    path = [Parameter(_NAMES.get(name, name), name, "path", str, NODEFAULT, True, "") for name in operation.path_names]
    taken = {one.name for one in path}
    fields = [one for one in _fields(operation) if one.name not in taken]
    by_name = {one.name: one for one in fields}
    first = [by_name.pop(name)._replace(by_position=True) for name in operation.positional]
    # What stands before a required one must be given too.
    needed = max((place for place, one in enumerate(first) if one.required), default=-1)
    first = [one._replace(default=NODEFAULT) if place < needed else one for place, one in enumerate(first)]
    return (*path, *first, *by_name.values())


def _fields(operation: Operation) -> Iterator[Parameter]:
    places: tuple[tuple[Literal["body", "query"], Any], ...] = (("body", operation.body), ("query", operation.query))
    for place, kind in places:
        if kind is None:
            continue
        fields = {field.name: field for field in msgspec.structs.fields(kind) if field.name not in _LEFT_OUT}
        # The end of a span of time; alone, `to` is a recipient.
        names = {**_NAMES, "to": "until"} if "from_" in fields else _NAMES
        # What is particular to the operation comes before what it shares with others, such as the limit of a page.
        own_first = [name for base in kind.__mro__ for name in getattr(base, "__annotations__", ()) if name in fields]
        for name in dict.fromkeys(own_first):
            field = fields[name]
            default = field.default if field.default_factory is NODEFAULT else field.default_factory()
            told = description(field.type)
            yield Parameter(names.get(name, name), field.encode_name, place, field.type, default, False, told)


def plain_types(kind: Any) -> tuple[Any, ...]:
    """The types in a field's annotation: unions taken apart, without bounds, None and UNSET."""
    if get_origin(kind) is Annotated:
        return plain_types(get_args(kind)[0])
    if _is_union(kind):
        return tuple(one for part in get_args(kind) for one in plain_types(part))
    return () if kind in (type(None), msgspec.UnsetType) else (kind,)


def description(kind: Any) -> str:
    """What the annotation of a field says about it."""
    if get_origin(kind) is Annotated:
        told = [one.description for one in get_args(kind)[1:] if isinstance(one, Meta) and one.description]
        return told[-1] if told else description(get_args(kind)[0])
    return next(filter(None, map(description, get_args(kind))), "") if _is_union(kind) else ""


def is_struct(kind: Any) -> bool:
    """True for a shape."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_union(kind: Any) -> bool:
    return get_origin(kind) is not None and getattr(get_origin(kind), "__name__", "") in ("Union", "UnionType")
