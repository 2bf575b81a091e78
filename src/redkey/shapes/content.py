"""Content by its hash: uploaded, downloaded, erased. The ledger names it and never contains it."""

from __future__ import annotations

from typing import Annotated

from redkey.shapes.fields import Body, Extended, Reply, Sha256, one_of
from redkey.shapes.operation import ADMIN, AGENT, PRODUCE, READ, Operation

OCTETS = "application/octet-stream"


class PutQuery(Body, frozen=True, kw_only=True):
    """The expected hash of the body; a body with another hash is refused."""

    sha256: Sha256 | None = None


class KeptContent(Reply, frozen=True, kw_only=True):
    """Stored content: its hash and its size."""

    sha256: str
    bytes: int


class ErasedContent(Reply, frozen=True, kw_only=True):
    """Erased content; its hash stays on the ledger."""

    sha256: str
    status: Annotated[str, one_of("erased")]
    event_id: str


_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

# The SDK's methods for bodies are written by hand, because they stream.
PUT_CONTENT = Operation(
    "put_content",
    "PUT",
    "/content",
    (*PRODUCE, *AGENT),
    query=PutQuery,
    reply=KeptContent,
    status=201,
    summary="Store a body of up to 1 GiB under its SHA-256.",
    description="Store a body under its SHA-256.",
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
    summary="Get a body.",
    media=(OCTETS,),
    method_name="content.get",
)
ERASE_CONTENT = Operation(
    "erase_content",
    "DELETE",
    "/content/{sha256}",
    ADMIN,
    body=Extended,
    reply=ErasedContent,
    summary="Erase a body. Its hash stays on the ledger, its bytes are gone.",
    description="Erase a body; the record that it existed stays.",
    replies={409: "The content is structure that replay needs."},
    reply_example={"sha256": _SHA256, "status": "erased", "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"},
    method_name="content.erase",
)

OPERATIONS = (PUT_CONTENT, GET_CONTENT, ERASE_CONTENT)
