"""The envelope of protocol v0 and v1: one compact JSON object on a line, read strictly, written with what it has.

A line that two parsers could read differently is refused before anything of it is kept: what one agent sends, every
other agent and every follower of the session must be able to read.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec
import orjson

from redkey.errors import BusRefused, JsonRefused
from redkey.wire.decode import decode

VERSION = 0
# Versions that are read; what the bus itself says is version 0 unless a connection speaks 1.
VERSIONS = (0, 1)
LINE_LIMIT = 1024 * 1024
# How the bus names itself as the source of what it says; no agent may have this id.
BUS = "bus"
# What a bound ledger says comes from here.
LEDGER = "redkey"
# Whoever speaks by HTTP without being an agent.
USER = "user"
RESERVED = frozenset({BUS, LEDGER, USER})
# A message to this topic goes to every other agent of the session.
EVERYBODY = "agents"
ID_LIMIT = 128
NAME_LIMIT = 200
_AGENT_ID = re.compile(r"[^\s\x00-\x1f\x7f/#]{1,128}")
_INBOX = re.compile(r"agent\.(?P<id>.+)\.inbox")

ACK_MODES = ("auto", "manual", "none")
ACK_TIMEOUT_MS = 30_000
_ACK_LEAST_MS, _ACK_MOST_MS = 50, 600_000


class Ack(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How the receiver confirms a message: by itself, by its application, or not at all; and how long it has."""

    mode: str | None = None
    timeout_ms: int | None = None


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request was refused."""

    code: str
    message: str
    detail: Any = None


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The fields of the seed, in its order; what has no value is left out."""

    v: int
    type: str
    id: str
    ts: str
    src: str
    dst: str | None = None
    topic: str | None = None
    session: str | None = None
    corr: str | None = None
    payload: Any = None
    ack: Ack | None = None
    status: str | None = None
    error: Fault | None = None
    # Of v1.
    seq: int | None = None
    idempotency_key: str | None = None
    payload_ref: str | None = None
    content_type: str | None = None
    size: int | None = None
    meta: Any = None

    def encode(self) -> bytes:
        # `v` is 0, which is not a default: a version is always said.
        return _encoder.encode(self)

    def fields(self) -> dict[str, Any]:
        """The payload as an object; refused when it is something else."""
        if self.payload is None:
            return {}
        if not isinstance(self.payload, dict):
            raise BusRefused("the payload must be an object", code="payload_invalid", pointer="/payload")
        return self.payload


class _Read(Envelope, frozen=True, kw_only=True, gc=False):
    """An envelope as it stands on a line; the payload and `meta` are decoded apart, and strictly."""

    payload: msgspec.Raw = msgspec.Raw()
    meta: msgspec.Raw = msgspec.Raw()


_encoder = msgspec.json.Encoder()
_read = msgspec.json.Decoder(_Read).decode
_STAMPED = ("id", "type", "ts", "src")


def read_line(line: bytes) -> Envelope:
    """The envelope on a line; BusRefused or JsonRefused with a code that says why not."""
    try:
        found = _read(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_slowly(line)
    if (
        found.v not in VERSIONS
        or len(line) > LINE_LIMIT
        or not (0 < len(found.id) <= ID_LIMIT and found.id.isprintable())
        or not (0 < len(found.type) <= ID_LIMIT and found.type.isprintable())
        or not (0 < len(found.ts) <= ID_LIMIT and found.ts.isprintable())
        or not (0 < len(found.src) <= ID_LIMIT and found.src.isprintable())
    ):
        return _read_slowly(line)
    # What others will have to read is read strictly; of the envelope itself only the fields of its version go on.
    envelope = Envelope(
        v=found.v,
        type=found.type,
        id=found.id,
        ts=found.ts,
        src=found.src,
        dst=found.dst,
        topic=found.topic,
        session=found.session,
        corr=found.corr,
        payload=_strictly(found.payload),
        ack=found.ack,
    )
    if found.v == 0:
        return envelope
    return msgspec.structs.replace(
        envelope,
        seq=found.seq,
        idempotency_key=found.idempotency_key,
        payload_ref=found.payload_ref,
        content_type=found.content_type,
        size=found.size,
        meta=_strictly(found.meta),
    )


def _strictly(raw: msgspec.Raw) -> Any:
    return decode(bytes(raw), size_limit=LINE_LIMIT) if raw else None


class _Acked(msgspec.Struct, gc=False):
    acked: str | None = None


class _AckLine(msgspec.Struct, gc=False, tag_field="type", tag="message.ack"):
    """What of a `message.ack` matters. Nothing of it is kept, so it need not be read strictly."""

    v: Literal[0, 1]
    id: str
    ts: str
    src: str
    session: str | None = None
    corr: str | None = None
    payload: _Acked | None = None


_read_ack = msgspec.json.Decoder(_AckLine).decode


def read_ack(line: bytes) -> tuple[str | None, str, str] | None:
    """Session, agent and message of a line that confirms a message; None for any other line."""
    try:
        found = _read_ack(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    acked = (found.payload.acked if found.payload is not None else None) or found.corr
    return (found.session, found.src, acked) if acked is not None and len(line) <= LINE_LIMIT else None


def _read_slowly(line: bytes) -> Envelope:
    """The same for a line with something wrong with it, to tell what."""
    value = decode(line, size_limit=LINE_LIMIT)
    if not isinstance(value, dict):
        raise BusRefused("a line is one JSON object", code="envelope_invalid")
    version = value.get("v")
    if type(version) is int and version not in VERSIONS:
        message = f"this bus speaks versions {' and '.join(map(str, VERSIONS))}, not {version}"
        raise BusRefused(message, code="unsupported_version", pointer="/v")
    # Null counts as absent: some writers spell out what they have not.
    try:
        envelope = msgspec.convert({name: part for name, part in value.items() if part is not None}, Envelope)
    except msgspec.ValidationError as cause:
        raise BusRefused(f"the envelope is wrong: {cause}", code="envelope_invalid") from None
    for name in _STAMPED:
        text = getattr(envelope, name)
        if not (0 < len(text) <= ID_LIMIT and text.isprintable()):
            message = f"{name} has 1 to {ID_LIMIT} visible characters"
            raise BusRefused(message, code="envelope_invalid", pointer=f"/{name}")
    return envelope


def asked_id(line: bytes) -> str | None:
    """The id of a request that could not be read as a whole, so that its sender learns which one was refused."""
    try:
        found = orjson.loads(line)["id"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        return None
    return found if isinstance(found, str) and 0 < len(found) <= ID_LIMIT else None


def fault_of(cause: BusRefused | JsonRefused) -> Fault:
    return Fault(cause.code, cause.message, {"pointer": cause.pointer} if cause.pointer else None)


def agent_id(text: Any, pointer: str = "/payload/id") -> str:
    """An agent id that may be used: visible, without spaces, and not one the bus keeps for itself."""
    if not isinstance(text, str) or not _AGENT_ID.fullmatch(text) or not text.isprintable():
        message = f"an agent id has 1 to {ID_LIMIT} visible characters, no spaces, no / and no #"
        raise BusRefused(message, code="agent_id_invalid", pointer=pointer)
    if text in RESERVED:
        raise BusRefused(f"the id {text!r} is the bus's own", code="agent_id_reserved", pointer=pointer)
    return text


def display_name(text: Any, pointer: str = "/payload/name") -> str | None:
    """A display name without the spaces around it; None when nothing is left or none was given."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise BusRefused("a name is text", code="name_invalid", pointer=pointer)
    name = text.strip()
    if len(name) > NAME_LIMIT or not name.isprintable():
        message = f"a name has at most {NAME_LIMIT} characters, all of them visible"
        raise BusRefused(message, code="name_invalid", pointer=pointer)
    return name or None


def inbox_of(topic: str) -> str | None:
    """The agent whose inbox a topic is."""
    found = _INBOX.fullmatch(topic)
    return found["id"] if found is not None else None


def settle_ack(ack: Ack | None) -> Ack:
    """How a message is confirmed when its sender leaves it open: by the receiver itself, within 30 seconds."""
    mode = (ack.mode if ack is not None else None) or "auto"
    timeout = ack.timeout_ms if ack is not None and ack.timeout_ms is not None else ACK_TIMEOUT_MS
    if mode not in ACK_MODES:
        raise BusRefused(f"ack.mode is one of {', '.join(ACK_MODES)}", code="ack_invalid", pointer="/ack/mode")
    if not _ACK_LEAST_MS <= timeout <= _ACK_MOST_MS:
        message = f"ack.timeout_ms is from {_ACK_LEAST_MS} to {_ACK_MOST_MS:,}"
        raise BusRefused(message, code="ack_invalid", pointer="/ack/timeout_ms")
    return Ack(mode) if mode == "none" else Ack(mode, timeout)
