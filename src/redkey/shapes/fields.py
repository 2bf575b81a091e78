"""What all shapes share: the bases of requests and replies, field types with their limits, and pages."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

Item = TypeVar("Item")

# At least one visible character: a name of spaces alone is refused.
VISIBLE = r"\S"
# Names, sentences and texts for people; longer texts go to PUT /content.
Name = Annotated[str, Meta(pattern=VISIBLE, max_length=200)]
Sentence = Annotated[str, Meta(min_length=1, max_length=1000)]
Text = Annotated[str, Meta(max_length=65536)]
Word = Annotated[str, Meta(min_length=1, max_length=64)]
Id = Annotated[str, Meta(min_length=1, max_length=64)]
Slug = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]{0,31}$", max_length=32)]
# In Python `$` also matches before a line break at the end; where no wire is checked after this, that is excluded.
Slot = Annotated[str, Meta(pattern=r"^([a-z0-9][a-z0-9._-]{0,31})?(?!\n)$", max_length=32)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", min_length=64, max_length=64)]
TaskId = Annotated[str, Meta(pattern="^task_[0-7][0-9A-HJKMNP-TV-Z]{25}$", max_length=31)]
LeaseSeconds = Annotated[int, Meta(ge=5, le=86400, description="How long a claim lasts without a heartbeat.")]
Seconds = Annotated[int, Meta(ge=1, le=31_536_000)]
Attempts = Annotated[int, Meta(ge=1, le=999)]
Wait = Annotated[float, Meta(ge=0, le=60, description="How many seconds to wait if there is nothing yet.")]
RoleId = Annotated[str, Meta(pattern="^role_[a-zA-Z0-9][a-zA-Z0-9._-]{0,26}$")]
BlockerType = Literal["spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "verification_fail", "auth"]
# The roles that are notified of a block.
BlockRoute = Annotated[tuple[RoleId, ...], Meta(max_length=6)]
IdempotencyKey = Annotated[str, Meta(min_length=1, max_length=255)]

# Comma-separated words; SDK callers may pass a list.
SEVERAL = Meta(extra={"several": True})

PAGE = 50
PAGE_LIMIT = 500
BATCH_LIMIT = 500


class Body(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The body of a request: its fields and no others."""


Extensions = Annotated[
    dict[str, Any],
    Meta(
        description="Namespaced data for the record (redkey.*, a2a.*, or a reverse domain), as a JSON object. It stays "
        "on the ledger forever, within the 1,024 bytes of the wire."
    ),
]


class Extended(Body, frozen=True, kw_only=True):
    """The base of every recorded request: it may carry data of the caller, stored on its wire and returned."""

    extensions: Extensions | None = None


class Reply(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A reply of the server: camelCase in JSON, snake_case here.

    A field without a value is left out. Readers ignore unknown fields, so that an older SDK can read a newer server.
    """


class Identified(Reply, frozen=True, kw_only=True):
    """A reply about one thing: its id is in `id` and in the field that other replies use for it."""

    # The field with the same id.
    SPECIFIC: ClassVar[str] = "id"
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            msgspec.structs.force_setattr(self, "id", getattr(self, self.SPECIFIC))


class Stateful(Identified, frozen=True, kw_only=True):
    """A reply about one thing that goes through states: its state is in `state`, and in `status` as before."""

    status: str
    state: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.state:
            msgspec.structs.force_setattr(self, "state", self.status)


class SecretReply(Reply, frozen=True, kw_only=True):
    """A reply with a secret; the server shows it once, and `repr` never does."""

    def __repr__(self) -> str:
        shown = (
            f"{name}={'***' if name in _SECRETS and value else repr(value)}"
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        )
        return f"{type(self).__name__}({', '.join(shown)})"


_SECRETS = frozenset({"api_key", "access_token", "refresh_token", "login_code", "secret"})


DelaySeconds = Annotated[
    float, Meta(ge=0, le=86_400, description="Seconds before another attempt: after the first failure, or at most.")
]
Backoff = Annotated[float, Meta(ge=1, le=10, description="Factor for the pause after each further failure.")]
Jitter = Annotated[float, Meta(ge=0, le=1, description="Up to this share of the pause is left out at random.")]


class PageQuery(Body, frozen=True, kw_only=True):
    """Which part of a list: at most `limit` items after the cursor that the last page returned as `next`."""

    limit: Annotated[int, Meta(ge=1, le=PAGE_LIMIT)] = PAGE
    after: Annotated[str, Meta(max_length=128)] = ""


class Page(msgspec.Struct, Generic[Item], frozen=True, rename="camel"):
    """One page of a list; `next` is the cursor of the next page, null if there is none."""

    items: tuple[Item, ...]
    next: str | None = None


def one_of(*values: str) -> Meta:
    """A string that is one of these values today. Readers accept any string, because newer servers may add values."""
    return Meta(extra_json_schema={"enum": list(values)})


@cache
def camel(name: str) -> str:
    """Turn `lease_expires_at` into `leaseExpiresAt`, and `from_` (`from` is a Python keyword) into `from`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


@cache
def _fields(kind: type[Body], names: tuple[str, ...]) -> tuple[tuple[str, str, Any], ...]:
    """Name, JSON name and default of some fields; cached, because msgspec computes them anew each time."""
    return tuple(
        (field.name, field.encode_name, field.default) for field in msgspec.structs.fields(kind) if field.name in names
    )


def set_fields(body: Body, *names: str) -> dict[str, Any]:
    """The named fields of a body that differ from their defaults, under their JSON names."""
    return {
        encoded: value
        for name, encoded, default in _fields(type(body), names)
        if (value := getattr(body, name)) != default
    }
