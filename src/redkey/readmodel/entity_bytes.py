"""The bytes of an entity's row: equal entities have the same bytes, however they were built."""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

import msgspec

_encoder = msgspec.json.Encoder()


def encode_entity(entity: msgspec.Struct) -> bytes:
    """Encode an entity: equal entities have the same bytes, however they were built."""
    _share_defaults(entity)
    return _encoder.encode(entity)


def _share_defaults(entity: msgspec.Struct) -> None:
    """Replace values that equal their default with the default itself: the encoder omits defaults by identity."""
    for name, default in _defaults(type(entity)):
        if isinstance(value := getattr(entity, name), msgspec.Struct) and value is not default:
            _share_defaults(value)
        if value is not default and value == default:
            msgspec.structs.force_setattr(entity, name, default)


@cache
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the defaults that may have equal copies; Python itself shares empty values and small integers."""
    return tuple(
        (field.name, field.default)
        for field in msgspec.structs.fields(kind)
        if (type(field.default) is str and field.default)
        or (type(field.default) is int and not -5 <= field.default <= 256)
        or any(isinstance(one, type) and issubclass(one, msgspec.Struct) for one in (field.type, *get_args(field.type)))
    )
