"""Signatures: the parameters of an operation for Python and command line callers, read from its declaration."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta

from redkey.shapes.fields import SEVERAL
from redkey.shapes.operation import Operation

# The names that Python callers use where the API has another name.
_NAMES = {
    "agent_card": "card",
    "agent_card_url": "card_url",
    "at": "at_sequence",
    "from_": "since",
    "queue_id": "queue",
    "role_id": "role",
}
# Fields with another way in: the idempotency key is also a header, and `to` also a recipient. And the fields of a
# message that the server fills in itself.
_LEFT_OUT = {"idempotency_key", "to_agent", "own_id", "said_as"}


class Parameter(NamedTuple):
    """One parameter of an operation."""

    name: str
    # Its name in the JSON body, the query string or the path.
    wire: str
    place: Literal["path", "body", "query"]
    kind: Any
    # NODEFAULT if it is required.
    default: Any
    by_position: bool
    description: str

    @property
    def required(self) -> bool:
        return self.default is NODEFAULT

    @property
    def is_several(self) -> bool:
        """True for comma-separated words."""
        return get_origin(self.kind) is Annotated and SEVERAL in get_args(self.kind)

    @property
    def types(self) -> tuple[Any, ...]:
        """The possible types, without None and limits."""
        return plain_types(self.kind)


@cache
def parameters(operation: Operation) -> tuple[Parameter, ...]:
    """The parameters in the order of a call: those of the path, by position, by name."""
    path = [Parameter(_NAMES.get(name, name), name, "path", str, NODEFAULT, True, "") for name in operation.path_names]
    path_names = {parameter.name for parameter in path}
    fields = [parameter for parameter in _fields(operation) if parameter.name not in path_names]
    by_name = {parameter.name: parameter for parameter in fields}
    first = [by_name.pop(name)._replace(by_position=True) for name in operation.positional]
    # A parameter before a required one is required too.
    last = max((place for place, parameter in enumerate(first) if parameter.required), default=-1)
    first = [
        parameter._replace(default=NODEFAULT) if place < last else parameter for place, parameter in enumerate(first)
    ]
    return (*path, *first, *by_name.values())


def _fields(operation: Operation) -> Iterator[Parameter]:
    places: tuple[tuple[Literal["body", "query"], Any], ...] = (("body", operation.body), ("query", operation.query))
    for place, kind in places:
        if kind is None:
            continue
        fields = {field.name: field for field in msgspec.structs.fields(kind) if field.name not in _LEFT_OUT}
        # With `from`, `to` is the end of a time span; alone, it is a recipient.
        names = {**_NAMES, "to": "until"} if "from_" in fields else _NAMES
        # The operation's own fields come before inherited ones, such as the limit of a page.
        own_first = [name for base in kind.__mro__ for name in getattr(base, "__annotations__", ()) if name in fields]
        for name in dict.fromkeys(own_first):
            field = fields[name]
            default = field.default if field.default_factory is NODEFAULT else field.default_factory()
            text = description(field.type)
            yield Parameter(names.get(name, name), field.encode_name, place, field.type, default, False, text)


def plain_types(kind: Any) -> tuple[Any, ...]:
    """The types in a field's annotation: members of unions, without limits, None and UNSET."""
    if get_origin(kind) is Annotated:
        return plain_types(get_args(kind)[0])
    if _is_union(kind):
        return tuple(kind for part in get_args(kind) for kind in plain_types(part))
    return () if kind in (type(None), msgspec.UnsetType) else (kind,)


def description(kind: Any) -> str:
    """The description in a field's annotation."""
    if get_origin(kind) is Annotated:
        texts = [meta.description for meta in get_args(kind)[1:] if isinstance(meta, Meta) and meta.description]
        return texts[-1] if texts else description(get_args(kind)[0])
    return next(filter(None, map(description, get_args(kind))), "") if _is_union(kind) else ""


def is_struct(kind: Any) -> bool:
    """True for a shape."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_union(kind: Any) -> bool:
    return get_origin(kind) is not None and getattr(get_origin(kind), "__name__", "") in ("Union", "UnionType")
