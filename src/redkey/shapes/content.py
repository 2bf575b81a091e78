"""Content by its hash: streamed in, streamed out, erased. The ledger names it and never holds it."""

from __future__ import annotations

from typing import Annotated

from redkey.shapes.fields import Body, Reply, Sha256, one_of
from redkey.shapes.operation import ADMIN, AGENT, PRODUCE, READ, Operation

OCTETS = "application/octet-stream"


class PutQuery(Body, frozen=True, kw_only=True):
    """The hash that the body should have; a body with another one is refused."""

    sha256: Sha256 | None = None


class KeptContent(Reply, frozen=True, kw_only=True):
    """Content that is kept: its name and its size."""

    sha256: str
    bytes: int


class ErasedContent(Reply, frozen=True, kw_only=True):
    """Content that is gone; its hash stays on the ledger."""

    sha256: str
    status: Annotated[str, one_of("erased")]
    event_id: str


_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

# The SDK's methods for bodies are written by hand: they stream.
PUT_CONTENT = Operation(
    "put_content",
    "PUT",
    "/content",
    (*PRODUCE, *AGENT),
    query=PutQuery,
    reply=KeptContent,
    status=201,
    summary="Keep a body of up to 1 GiB under its SHA-256.",
    description="Keep a body under its SHA-256.",
    streamed=True,
    body_limit="content_bytes",
    consumes=OCTETS,
    reply_example={"sha256": _SHA256, "bytes": 4},
)
GET_CONTENT = Operation(
    "get_content",
    "GET",
    "/content/{sha256}",
    READ,
    summary="A body.",
    media=(OCTETS,),
    method_name="content.get",
)
ERASE_CONTENT = Operation(
    "erase_content",
    "DELETE",
    "/content/{sha256}",
    ADMIN,
    reply=ErasedContent,
    summary="Erase a body. Its hash stays on the ledger, its bytes are gone.",
    description="Erase a body; that it was there stays on the record.",
    replies={409: "The content is structure that replay needs."},
    reply_example={"sha256": _SHA256, "status": "erased", "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"},
    method_name="content.erase",
)

OPERATIONS = (PUT_CONTENT, GET_CONTENT, ERASE_CONTENT)
