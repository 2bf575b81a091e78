"""JSON Schemas of what the API sends and takes.

msgspec writes them, but for unions of structs, which it could not decode without a tag. Replies are never decoded
here, so such unions are allowed in them: they are described as what they are, one of several.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

REF = "#/components/schemas/{name}"


class _OneOf:
    """Stands for a union of structs while schemas are written."""

    kinds: tuple[Any, ...] = ()


class Schemas:
    """Schemas by type, and the components that they refer to."""

    def __init__(self, kinds: Iterable[Any]) -> None:
        self._known: dict[Any, Any] = {}
        self._unions: list[type[_OneOf]] = []
        asked = list(dict.fromkeys(kinds))
        plain = [self._plain(kind) for kind in asked]
        for union in self._unions:
            plain += [self._plain(kind) for kind in union.kinds]
        found, components = msgspec.json.schema_components(plain, schema_hook=self._hook, ref_template=REF)
        self.components: dict[str, Any] = dict(components)
        self._schemas = dict(zip(asked, found, strict=False))

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type that was asked for; a struct's is a reference."""
        schema: dict[str, Any] = self._schemas[kind]
        return schema

    def _hook(self, kind: type) -> dict[str, Any]:
        if issubclass(kind, _OneOf):
            return {"anyOf": [{"$ref": REF.format(name=one.__name__)} for one in kind.kinds]}
        raise NotImplementedError

    def _plain(self, kind: Any) -> Any:
        """The type without unions of structs."""
        if kind not in self._known:
            self._known[kind] = kind
            self._known[kind] = self._translated(kind)
        return self._known[kind]

    def _translated(self, kind: Any) -> Any:
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return Annotated[self._plain(arguments[0]), *arguments[1:]]
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin is not None and arguments and not isinstance(kind, str):
            made = tuple(self._plain(one) if one is not ... else one for one in arguments)
            return origin[made] if made != arguments else kind
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._struct(kind)
        return kind

    def _union(self, arguments: tuple[Any, ...]) -> Any:
        structs = tuple(one for one in arguments if isinstance(one, type) and issubclass(one, msgspec.Struct))
        rest = tuple(self._plain(one) for one in arguments if one not in structs)
        if len(structs) < 2:
            return Union[(*map(self._plain, structs), *rest)]
        union = type(f"OneOf{len(self._unions)}", (_OneOf,), {"kinds": structs})
        self._unions.append(union)
        return Union[(union, *rest)] if rest else union

    def _struct(self, kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
        fields = msgspec.structs.fields(kind)
        made = [self._plain(field.type) for field in fields]
        if all(new is field.type or new == field.type for new, field in zip(made, fields, strict=True)):
            return kind
        parts = [
            (field.name, new, msgspec.field(name=field.encode_name))
            if field.required
            else (field.name, new, msgspec.field(default=None, name=field.encode_name))
            for field, new in zip(fields, made, strict=True)
        ]
        namespace = {"__doc__": kind.__doc__}
        return msgspec.defstruct(kind.__name__, parts, namespace=namespace, kw_only=True, frozen=True)
