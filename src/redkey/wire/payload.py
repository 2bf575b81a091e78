"""The base of every event type: what the generated structs of `events` have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Protocol, TypeVar, cast

import msgspec


class WirePart(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An object on a wire. Its fields are in canonical order and absent ones are None, so its encoding is canonical."""


class Payload(WirePart, frozen=True):
    """The payload of one event type. `TYPE` names the type on the wire; `KEYED` types carry `idem` and `body`."""

    TYPE: ClassVar[str]
    KEYED: ClassVar[bool] = False

    def named(self) -> tuple[str | None, ...]:
        """Return the ids in the payload by which the event index finds the wire."""
        return ()


P = TypeVar("P", bound=Payload)


class ContentRef(Protocol):
    """Content outside the ledger, by hash and size."""

    @property
    def bytes(self) -> int: ...

    @property
    def sha256(self) -> str: ...


class _Keyed(Protocol):
    """The fields of `KEYED` types."""

    @property
    def idem(self) -> str | None: ...

    @property
    def body(self) -> str | None: ...


def request_key(payload: Payload) -> tuple[str, str] | None:
    """Return the hashes of the idempotency key and of the body of a request; None if it had no key."""
    if not payload.KEYED:
        return None
    keyed = cast(_Keyed, payload)
    return (keyed.idem, keyed.body or "") if keyed.idem is not None else None


def with_key(payload: P, idem: str, body: str) -> P:
    """Return the payload with the hashes of a request's idempotency key and body."""
    return msgspec.structs.replace(payload, idem=idem, body=body)


def content_refs(payload: Payload) -> Iterator[tuple[str, ContentRef]]:
    """Return every ref of a payload, with the name of its field."""
    for name in payload.__struct_fields__:
        if name.endswith("_ref"):
            ref = getattr(payload, name)
            if ref is not None:
                yield name, ref
