"""What all shapes share: the bases of requests and replies, the bounds of their fields, and pages."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

Item = TypeVar("Item")

# Names for people, sentences, and texts; what is longer goes to PUT /content.
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Sentence = Annotated[str, Meta(min_length=1, max_length=1000)]
Text = Annotated[str, Meta(max_length=65536)]
Word = Annotated[str, Meta(min_length=1, max_length=64)]
Id = Annotated[str, Meta(min_length=1, max_length=64)]
Slug = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]{0,31}$", max_length=32)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", min_length=64, max_length=64)]
TaskId = Annotated[str, Meta(pattern="^task_[0-7][0-9A-HJKMNP-TV-Z]{25}$", max_length=31)]
LeaseSeconds = Annotated[int, Meta(ge=5, le=86400, description="How long a hold lasts without a heartbeat.")]
Seconds = Annotated[int, Meta(ge=1, le=31_536_000)]
Attempts = Annotated[int, Meta(ge=1, le=999)]
Wait = Annotated[float, Meta(ge=0, le=60, description="How many seconds to wait for something to come.")]
RoleId = Annotated[str, Meta(pattern="^role_[a-zA-Z0-9][a-zA-Z0-9._-]{0,26}$")]
BlockerType = Literal["spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "verification_fail", "auth"]
# The roles that are told of a block.
BlockRoute = Annotated[tuple[RoleId, ...], Meta(max_length=6)]
IdempotencyKey = Annotated[str, Meta(min_length=1, max_length=255)]

# Words with commas between; callers of the SDK may give a list of them.
SEVERAL = Meta(extra={"several": True})

PAGE = 50
PAGE_LIMIT = 500
BATCH_LIMIT = 500


class Body(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What a request carries: its fields and no others."""


class Reply(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What the server answers: camelCase in JSON, snake_case here.

    A field without a value is left out. Fields that a reader does not know are ignored, so that an older SDK can read
    a newer server.
    """


class SecretReply(Reply, frozen=True, kw_only=True):
    """A reply that carries a secret, shown once by the server and never by `repr`."""

    def __repr__(self) -> str:
        shown = (
            f"{name}={'***' if name in _SECRETS and value else repr(value)}"
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        )
        return f"{type(self).__name__}({', '.join(shown)})"


_SECRETS = frozenset({"api_key", "access_token", "secret"})


class PageQuery(Body, frozen=True, kw_only=True):
    """Which part of a list: at most `limit` items after the cursor that the page before gave as `next`."""

    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = PAGE
    after: Annotated[str, Meta(max_length=128)] = ""


class Page(msgspec.Struct, Generic[Item], frozen=True, rename="camel"):
    """One page of a list; `next` is the cursor of the page that follows, null when there is none."""

    items: tuple[Item, ...]
    next: str | None = None


def one_of(*values: str) -> Meta:
    """A text of the server that is one of these today. Readers take any text, because a newer server may say more."""
    return Meta(extra_json_schema={"enum": list(values)})


@cache
def camel(name: str) -> str:
    """`lease_expires_at` as `leaseExpiresAt`; `from_`, which Python keeps for itself without its end, as `from`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


@cache
def _fields(kind: type[Body], names: tuple[str, ...]) -> tuple[tuple[str, str, Any], ...]:
    """Name, name in JSON and default of some fields; msgspec works them out anew each time, which is slow."""
    return tuple(
        (field.name, field.encode_name, field.default) for field in msgspec.structs.fields(kind) if field.name in names
    )


def given(body: Body, *names: str) -> dict[str, Any]:
    """The named fields of a body that differ from their defaults, under their names in JSON."""
    return {
        encoded: value
        for name, encoded, default in _fields(type(body), names)
        if (value := getattr(body, name)) != default
    }
