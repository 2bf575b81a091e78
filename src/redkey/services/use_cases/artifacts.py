"""Artifacts as they come in, and the check that the artifacts of a completion really exist."""

from __future__ import annotations

import base64
import binascii
import re
from hashlib import sha256 as hash_of
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from redkey.commands.claims import AddArtifact
from redkey.commands.decision import Refused, invalid, wrong
from redkey.errors import Finding, StoreFailed
from redkey.ledger.content import body as content_body
from redkey.ledger.ports import Content
from redkey.ledger.secrets import secret_in
from redkey.readmodel.view import read_document
from redkey.reducers.entities import Artifact, Task
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.use_cases.texts import keep, refuse_secrets
from redkey.shapes.claims import ArtifactAdded, Completion, NewArtifact
from redkey.shapes.fields import camel
from redkey.wire.canonical import canonical
from redkey.wire.ids import event_id, parse_stream
from redkey.wire.schema import compile_schema

_SCHEMA = "schemas/agent-wire/v1.1/artifact.schema.json"
# The characters of a URI, as RFC 3986 defines them.
_WIRE_URI = re.compile(r"[!#-\[\]-~]{1,200}")
_JSON, _TEXT, _BYTES = "application/json", "text/plain", "application/octet-stream"


class Bytes(msgspec.Struct, frozen=True):
    """The content of an artifact: hash, size, media type; and its bytes if they came with it."""

    sha256: str
    size: int
    media_type: str
    content: Content | None = None
    # The bytes are elsewhere: hash and size are what the caller states.
    unverified: bool = False


def add(caller: Caller, claim_id: str, body: NewArtifact) -> Pending[ArtifactAdded]:
    """Return an artifact of the attempt that a claim holds."""
    command, contents = taken_in(caller, claim_id, body)
    return Pending(command, _added, contents)


def taken_in(
    caller: Caller, claim_id: str, body: NewArtifact, under: str = ""
) -> tuple[AddArtifact, tuple[Content, ...]]:
    """Check a new artifact: return the command that adds it, and its content. `under` is its place in the request."""
    made = _bytes(caller, claim_id, body, under)
    artifact_id, task = body.artifact_id or "art_" + caller.means.ids.ulid(), held_task(caller, claim_id)
    before = [one.version for one in (task.artifacts if task is not None else ()) if one.artifact_id == artifact_id]
    lineage: dict[str, Any] = {
        "task_id": task.task_id if task is not None else "",
        "attempt": task.attempt if task is not None else 1,
    }
    if body.derived_from:
        lineage["derived_from"] = list(dict.fromkeys(body.derived_from))
    # In the form of artifact.schema.json.
    document: dict[str, Any] = {
        "artifact_id": artifact_id,
        "name": body.name,
        "version": before[0] + 1 if before else 1,
        "sha256": made.sha256,
        "bytes": made.size,
        "media_type": made.media_type,
        "lineage": lineage,
        "readiness": body.readiness,
    }
    if body.uri is not None:
        document["uri"] = body.uri
    if task is not None:
        _check(document, under)
    ref, text = keep(caller, document, claim_id=claim_id, under=under)
    command = AddArtifact(
        claim_id,
        artifact_id,
        body.name,
        ref,
        made.sha256,
        made.size,
        body.readiness,
        is_new=body.artifact_id is None,
        derived_from=tuple(dict.fromkeys(body.derived_from)),
        unverified=made.unverified,
        uri=_wire_uri(body.uri or ""),
        supersedes=body.supersedes or "",
        version=document["version"],
        extensions=caller.extended(body.extensions, under) if under else None,
    )
    return command, (text, made.content) if made.content is not None else (text,)


def _check(document: dict[str, Any], under: str) -> None:
    """Refuse what the schema of artifacts refuses, with the field names of the API."""
    findings = compile_schema(_SCHEMA).findings(document)
    if findings:
        raise invalid([Finding(one.code, under + camel(one.pointer), one.message) for one in findings])


def _wire_uri(uri: str) -> str:
    """Return the URI for the wire if it may be there; any other is only in the artifact's document. A wire cannot be
    erased.
    """
    return uri if _WIRE_URI.fullmatch(uri) and secret_in(uri) is None else ""


def from_output(caller: Caller, claim_id: str, done: Completion) -> list[NewArtifact]:
    """Return the artifacts that fields of `output` provide: of required outputs that have none and are not sent
    separately.
    """
    task, fields = held_task(caller, claim_id), done.output
    if task is None or not isinstance(fields, dict):
        return []
    there = {one.name for one in task.ready_artifacts().values()}
    there |= {one.name for one in done.artifacts if one.readiness != "draft"}
    missing = [name for name in task.outputs if name not in there]
    return [NewArtifact(name=name, content=fields[name]) for name in missing if name in fields]


def _added(outcome: Outcome, place: Place) -> ArtifactAdded:
    record = outcome.first("artifact.ready")
    if record is None:
        raise AssertionError("an artifact without a record")
    wire, payload = record.wire, record.wire["payload"]
    return ArtifactAdded(
        artifact_id=payload["artifact_id"],
        event_id=event_id(wire["wire_id"]),
        task_id=parse_stream(wire["stream"]["stream_id"]).subject,
        name=payload["name"],
        version=payload["version"],
        sha256=payload["sha256"],
        unverified="unverified" in payload,
    )


def _bytes(caller: Caller, claim_id: str, body: NewArtifact, under: str) -> Bytes:
    inline = (body.content is not UNSET) + (body.content_base64 is not None)
    if inline + (body.uri is not None) > 1:
        raise wrong("artifact_ambiguous", f"{under}/content", "give one of content, contentBase64 and uri")
    if inline:
        return _inline(caller, claim_id, body, under)
    if body.sha256 is None:
        raise wrong(
            "artifact_empty", f"{under}/content", "give content, contentBase64, a uri with its sha256, or a sha256"
        )
    if body.uri is not None and body.bytes is None:
        raise wrong("artifact_size_missing", f"{under}/bytes", "an artifact elsewhere says how many bytes it has")
    # Only its size is read: the body may be a gigabyte.
    facts = caller.means.store.content_facts(caller.topic, body.sha256)
    if facts is None and body.bytes is not None and body.uri is not None:
        return Bytes(body.sha256, body.bytes, body.media_type or _BYTES, unverified=True)
    if facts is None:
        raise wrong("content_not_found", f"{under}/sha256", "no such content was put into this workspace")
    if body.bytes not in (None, facts.bytes):
        raise wrong("content_size", f"{under}/bytes", f"the content has {facts.bytes} bytes")
    return Bytes(body.sha256, facts.bytes, body.media_type or _BYTES)


def _inline(caller: Caller, claim_id: str, body: NewArtifact, under: str) -> Bytes:
    if body.content_base64 is not None:
        try:
            data = base64.b64decode(body.content_base64, validate=True)
        except (binascii.Error, ValueError):
            raise wrong(
                "base64_invalid", f"{under}/contentBase64", "this is not base64 (RFC 4648, with padding)"
            ) from None
        # Bytes that are text are searched for secrets like text.
        refuse_secrets(caller, {"contentBase64": data.decode("utf-8", "replace")}, claim_id=claim_id, under=under)
        media = _BYTES
    else:
        refuse_secrets(caller, {"content": body.content}, claim_id=claim_id, under=under)
        media = _TEXT if isinstance(body.content, str) else _JSON
        data = body.content.encode() if isinstance(body.content, str) else canonical(body.content)
    digest = hash_of(data).hexdigest()
    if body.sha256 not in (None, digest):
        raise wrong("content_hash", f"{under}/sha256", f"the content has another hash: {digest}")
    if body.bytes not in (None, len(data)):
        raise wrong("content_size", f"{under}/bytes", f"the content has {len(data)} bytes")
    return Bytes(digest, len(data), body.media_type or media, content_body(data))


def ready_artifacts(caller: Caller, claim_id: str) -> list[Artifact]:
    """Return the artifacts that a completion of this claim would include."""
    task = held_task(caller, claim_id)
    return [artifact for artifact in task.artifacts if artifact.readiness != "draft"] if task is not None else []


def held_task(caller: Caller, claim_id: str) -> Task | None:
    """Return the task that a claim holds, or held until its lease expired."""
    world = caller.means.coordinator.peek(caller.topic)
    return world.tasks.get(world.claims.get(claim_id, "") or world.expired.get(claim_id, ""))


async def check_artifacts(caller: Caller, claim_id: str) -> tuple[str, ...]:
    """Refuse a completion if bytes of its artifacts are missing or damaged: the mechanical part of the verification.

    Returns the ids of artifacts whose bytes are elsewhere though their wires do not say so: those are older than the
    mark `unverified`.
    """
    ready = ready_artifacts(caller, claim_id)
    if not ready:
        return ()
    looked = await caller.in_thread(lambda: [(one, _look(caller, one)) for one in ready])
    missing = [one.name for one, found in looked if found == "missing"]
    if missing:
        detail = f"The content is gone or damaged of: {', '.join(missing[:8])}."
        finding = Finding("missing_artifact", "/artifactIds", detail)
        raise Refused(422, "missing_artifact", detail, findings=[finding])
    return tuple(one.artifact_id for one, found in looked if found == "elsewhere" and not one.unverified)


def _look(caller: Caller, artifact: Artifact) -> Literal["here", "elsewhere", "missing"]:
    """Read the bytes of an artifact."""
    if artifact.unverified:
        return "elsewhere"
    store, topic = caller.means.store, caller.topic
    try:
        if store.content_facts(topic, artifact.sha256) is None:
            said = read_document(store, topic, artifact.document_sha256) or {}
            return "elsewhere" if "uri" in said else "missing"
        # In pieces: the chunks are checked against the hash, and never held in memory together.
        for _ in store.content_chunks(topic, artifact.sha256):
            pass
        return "here"
    except StoreFailed:
        return "missing"
