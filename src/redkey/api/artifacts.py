"""Artifacts on their way in, and the check that what a completion rests on is really there."""

from __future__ import annotations

import base64
import binascii
from hashlib import sha256 as hash_of
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from redkey.api.call import Call
from redkey.api.fields import Body, Sha256, Slug, wrong
from redkey.api.texts import keep, refuse_secrets
from redkey.commands.claims import AddArtifact
from redkey.errors import Finding, StoreFailed
from redkey.http.problems import Declined
from redkey.ledger.content import body as content_body
from redkey.ledger.ports import Content
from redkey.readmodel.task_messages import MediaType
from redkey.readmodel.view import read_document
from redkey.reducers.entities import Artifact
from redkey.services.outcome import Settled
from redkey.wire.canonical import canonical

ArtifactId = Annotated[str, Meta(pattern="^art_[0-7][0-9A-HJKMNP-TV-Z]{25}$", max_length=30)]
_JSON, _TEXT, _BYTES = "application/json", "text/plain", "application/octet-stream"


class NewArtifact(Body, frozen=True, kw_only=True):
    """A durable output, in one of three ways: its content, content put before by hash, or a URI with the hash."""

    name: Slug
    # Text, or JSON.
    content: Any | UnsetType = UNSET
    content_base64: str | None = None
    uri: Annotated[str, Meta(pattern="^[!-~]+$", min_length=1, max_length=2048)] | None = None
    sha256: Sha256 | None = None
    bytes: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    media_type: MediaType | None = None
    readiness: Literal["draft", "ready", "final"] = "ready"
    # A new version of this artifact of the same attempt.
    artifact_id: ArtifactId | None = None
    derived_from: Annotated[tuple[ArtifactId, ...], Meta(max_length=4)] = ()


class Bytes(msgspec.Struct, frozen=True):
    """What an artifact consists of: hash, size, media type; the bytes themselves when they came with it."""

    sha256: str
    size: int
    media_type: str
    content: Content | None = None


async def add(call: Call, claim_id: str, body: NewArtifact) -> Settled:
    """Record an artifact of the attempt that a claim holds."""
    made = _bytes(call, claim_id, body)
    document: dict[str, Any] = {"name": body.name, "mediaType": made.media_type}
    if body.uri is not None:
        document["uri"] = body.uri
    ref, text = keep(call, document, claim_id=claim_id)
    command = AddArtifact(
        claim_id,
        body.artifact_id or "art_" + call.services.ids.ulid(),
        body.name,
        ref,
        made.sha256,
        made.size,
        body.readiness,
        is_new=body.artifact_id is None,
        derived_from=tuple(dict.fromkeys(body.derived_from)),
    )
    contents = [text, made.content] if made.content is not None else [text]
    record = (await call.submit(command, contents)).first("artifact.ready")
    if record is None:
        raise AssertionError("an artifact that nothing tells of")
    return record


def _bytes(call: Call, claim_id: str, body: NewArtifact) -> Bytes:
    inline = (body.content is not UNSET) + (body.content_base64 is not None)
    if inline + (body.uri is not None) > 1:
        raise wrong("artifact_ambiguous", "/content", "give one of content, contentBase64 and uri")
    if inline:
        return _inline(call, claim_id, body)
    if body.sha256 is None:
        raise wrong("artifact_empty", "/content", "give content, contentBase64, a uri with its sha256, or a sha256")
    if body.uri is not None:
        if body.bytes is None:
            raise wrong("artifact_size_missing", "/bytes", "an artifact elsewhere says how many bytes it has")
        return Bytes(body.sha256, body.bytes, body.media_type or _BYTES)
    # Its facts alone: the body may be a gigabyte.
    facts = call.services.store.content_facts(call.topic, body.sha256)
    if facts is None:
        raise wrong("content_not_found", "/sha256", "no such content was put into this workspace")
    return Bytes(body.sha256, facts.bytes, body.media_type or _BYTES)


def _inline(call: Call, claim_id: str, body: NewArtifact) -> Bytes:
    if body.content_base64 is not None:
        try:
            data = base64.b64decode(body.content_base64, validate=True)
        except (binascii.Error, ValueError):
            raise wrong("base64_invalid", "/contentBase64", "this is not base64 (RFC 4648, with padding)") from None
        # Bytes that are text are looked through like text.
        refuse_secrets(call, {"contentBase64": data.decode("utf-8", "replace")}, claim_id=claim_id)
        media = _BYTES
    else:
        refuse_secrets(call, {"content": body.content}, claim_id=claim_id)
        media = _TEXT if isinstance(body.content, str) else _JSON
        data = body.content.encode() if isinstance(body.content, str) else canonical(body.content)
    digest = hash_of(data).hexdigest()
    if body.sha256 not in (None, digest):
        raise wrong("content_hash", "/sha256", f"the content has another hash: {digest}")
    if body.bytes not in (None, len(data)):
        raise wrong("content_size", "/bytes", f"the content has {len(data)} bytes")
    return Bytes(digest, len(data), body.media_type or media, content_body(data))


def ready_artifacts(call: Call, claim_id: str) -> list[Artifact]:
    """The artifacts that a completion of this claim would rest on."""
    world = call.services.coordinator.peek(call.topic)
    task = world.tasks.get(world.claims.get(claim_id, "") or world.expired.get(claim_id, ""))
    return [artifact for artifact in task.artifacts if artifact.readiness != "draft"] if task is not None else []


async def check_artifacts(call: Call, claim_id: str) -> None:
    """Refuse to complete on artifacts whose bytes are gone or damaged: the mechanical part of the verification.

    Bytes elsewhere are taken on the agent's word, under the hash that it gave.
    """
    ready = ready_artifacts(call, claim_id)
    if not ready:
        return
    missing = await call.in_thread(lambda: [one.name for one in ready if not _is_there(call, one)])
    if missing:
        detail = f"The content is gone or damaged of: {', '.join(missing[:8])}."
        finding = Finding("missing_artifact", "/artifactIds", detail)
        raise Declined(422, "missing_artifact", detail, findings=[finding])


def _is_there(call: Call, artifact: Artifact) -> bool:
    store, topic = call.services.store, call.topic
    try:
        if "uri" in (read_document(store, topic, artifact.document_sha256) or {}):
            return True
        # Piece by piece: the chunks are checked against the hash, and never held in memory together.
        for _ in store.content_chunks(topic, artifact.sha256):
            pass
        return store.content_facts(topic, artifact.sha256) is not None
    except StoreFailed:
        return False
