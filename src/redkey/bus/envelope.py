"""The envelope of protocol v0 and v1: one compact JSON object on a line, read strictly, written without empty fields.

A line that two parsers could read differently is refused before any part of it is stored: every other agent and every
follower of the session must be able to read what one agent sends.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec
import orjson

from redkey.errors import BusRefused, JsonRefused
from redkey.wire.decode import decode

VERSION = 0
# The versions that are read. The bus itself sends version 0, or 1 to connections that use it.
VERSIONS = (0, 1)
LINE_LIMIT = 1024 * 1024
# The bus's own id as a sender; no agent may have it.
BUS = "bus"
# The sender of messages about events of a bound ledger.
LEDGER = "redkey"
# The person at this machine, and HTTP callers that are no agent.
USER = "user"
RESERVED = frozenset({BUS, LEDGER, USER})
# A message to this topic goes to every other agent of the session.
ALL_AGENTS = "agents"
ID_LIMIT = 128
NAME_LIMIT = 200
_AGENT_ID = re.compile(r"[^\s\x00-\x1f\x7f/#]{1,128}")
_INBOX = re.compile(r"agent\.(?P<id>.+)\.inbox")

ACK_MODES = ("auto", "manual", "none")
ACK_TIMEOUT_MS = 30_000
_ACK_LEAST_MS, _ACK_MOST_MS = 50, 600_000


class Ack(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How a message is confirmed: by the client, by the application, or not at all; and within what time."""

    mode: str | None = None
    timeout_ms: int | None = None


class EnvelopeFault(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request was refused, as the field `error` of an envelope."""

    code: str
    message: str
    detail: Any = None


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The fields of seed 002, in its order; fields without a value are left out."""

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
    error: EnvelopeFault | None = None
    # Fields of v1 only.
    seq: int | None = None
    idempotency_key: str | None = None
    payload_ref: str | None = None
    content_type: str | None = None
    size: int | None = None
    meta: Any = None

    def encode(self) -> bytes:
        """Write the envelope as JSON; `v` has no default, so it is always written."""
        return _encoder.encode(self)

    def fields(self) -> dict[str, Any]:
        """The payload as an object; raise BusRefused if it is something else."""
        if self.payload is None:
            return {}
        if not isinstance(self.payload, dict):
            raise BusRefused("the payload must be an object", code="payload_invalid", pointer="/payload")
        return self.payload


class _Read(Envelope, frozen=True, kw_only=True, gc=False):
    """An envelope as read from a line; `payload` and `meta` are decoded separately, and strictly."""

    payload: msgspec.Raw = msgspec.Raw()
    meta: msgspec.Raw = msgspec.Raw()


_encoder = msgspec.json.Encoder()
_read = msgspec.json.Decoder(_Read).decode
_STAMPED = ("id", "type", "ts", "src")


def read_line(line: bytes) -> Envelope:
    """Read the envelope on a line; raise BusRefused or JsonRefused if it is not valid."""
    try:
        fields = _read(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _read_slowly(line)
    if (
        fields.v not in VERSIONS
        or len(line) > LINE_LIMIT
        or not (0 < len(fields.id) <= ID_LIMIT and fields.id.isprintable())
        or not (0 < len(fields.type) <= ID_LIMIT and fields.type.isprintable())
        or not (0 < len(fields.ts) <= ID_LIMIT and fields.ts.isprintable())
        or not (0 < len(fields.src) <= ID_LIMIT and fields.src.isprintable())
    ):
        return _read_slowly(line)
    # Payload and meta reach other agents, so they are read strictly; only fields of the version are kept.
    envelope = Envelope(
        v=fields.v,
        type=fields.type,
        id=fields.id,
        ts=fields.ts,
        src=fields.src,
        dst=fields.dst,
        topic=fields.topic,
        session=fields.session,
        corr=fields.corr,
        payload=_strictly(fields.payload),
        ack=fields.ack,
    )
    if fields.v == 0:
        return envelope
    return msgspec.structs.replace(
        envelope,
        seq=fields.seq,
        idempotency_key=fields.idempotency_key,
        payload_ref=fields.payload_ref,
        content_type=fields.content_type,
        size=fields.size,
        meta=_strictly(fields.meta),
    )


def _strictly(raw: msgspec.Raw) -> Any:
    return decode(bytes(raw), size_limit=LINE_LIMIT) if raw else None


class _Acked(msgspec.Struct, gc=False):
    acked: str | None = None


class _AckLine(msgspec.Struct, gc=False, tag_field="type", tag="message.ack"):
    """The fields of a `message.ack` that matter. None is stored, so it need not be read strictly."""

    v: Literal[0, 1]
    id: str
    ts: str
    src: str
    session: str | None = None
    corr: str | None = None
    payload: _Acked | None = None


_read_ack = msgspec.json.Decoder(_AckLine).decode


def read_ack(line: bytes) -> tuple[str | None, str, str] | None:
    """Read session, agent and message id of an acknowledgement; None for any other line."""
    try:
        ack = _read_ack(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    acked = (ack.payload.acked if ack.payload is not None else None) or ack.corr
    return (ack.session, ack.src, acked) if acked is not None and len(line) <= LINE_LIMIT else None


def _read_slowly(line: bytes) -> Envelope:
    """Read a line that the fast path refused, and raise an error that says what is wrong."""
    value = decode(line, size_limit=LINE_LIMIT)
    if not isinstance(value, dict):
        raise BusRefused("a line must be one JSON object", code="envelope_invalid")
    version = value.get("v")
    if type(version) is int and version not in VERSIONS:
        message = f"this bus speaks versions {' and '.join(map(str, VERSIONS))}, not {version}"
        raise BusRefused(message, code="unsupported_version", pointer="/v")
    # Null counts as absent, because some clients write every field.
    try:
        envelope = msgspec.convert({name: part for name, part in value.items() if part is not None}, Envelope)
    except msgspec.ValidationError as cause:
        raise BusRefused(f"the envelope is not valid: {cause}", code="envelope_invalid") from None
    for name in _STAMPED:
        text = getattr(envelope, name)
        if not (0 < len(text) <= ID_LIMIT and text.isprintable()):
            message = f"{name} must have 1 to {ID_LIMIT} printable characters"
            raise BusRefused(message, code="envelope_invalid", pointer=f"/{name}")
    return envelope


def request_id(line: bytes) -> str | None:
    """Find the id of a request that is not valid, so that the error can name it."""
    try:
        value = orjson.loads(line)["id"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        return None
    return value if isinstance(value, str) and 0 < len(value) <= ID_LIMIT else None


def fault_of(cause: BusRefused | JsonRefused) -> EnvelopeFault:
    """Turn a refusal into the error of an envelope."""
    return EnvelopeFault(cause.code, cause.message, {"pointer": cause.pointer} if cause.pointer else None)


def agent_id(text: Any, pointer: str = "/payload/id") -> str:
    """Check an agent id: printable, no spaces, not reserved by the bus."""
    if not isinstance(text, str) or not _AGENT_ID.fullmatch(text) or not text.isprintable():
        message = f"an agent id has 1 to {ID_LIMIT} printable characters without spaces, / and #"
        raise BusRefused(message, code="agent_id_invalid", pointer=pointer)
    if text in RESERVED:
        raise BusRefused(
            f"the id {text!r} is reserved by the bus; choose another", code="agent_id_reserved", pointer=pointer
        )
    return text


def display_name(text: Any, pointer: str = "/payload/name") -> str | None:
    """Check a display name and strip it; None if it is absent or blank."""
    if text is None:
        return None
    if not isinstance(text, str):
        raise BusRefused("a name must be a string", code="name_invalid", pointer=pointer)
    name = text.strip()
    if len(name) > NAME_LIMIT or not name.isprintable():
        message = f"a name has at most {NAME_LIMIT} characters, all printable"
        raise BusRefused(message, code="name_invalid", pointer=pointer)
    return name or None


def inbox_of(topic: str) -> str | None:
    """The agent of an inbox topic; None for another topic."""
    match = _INBOX.fullmatch(topic)
    return match["id"] if match is not None else None


def settle_ack(ack: Ack | None) -> Ack:
    """Fill in the defaults of an ack: mode `auto`, 30 seconds."""
    mode = (ack.mode if ack is not None else None) or "auto"
    timeout = ack.timeout_ms if ack is not None and ack.timeout_ms is not None else ACK_TIMEOUT_MS
    if mode not in ACK_MODES:
        raise BusRefused(f"ack.mode must be one of {', '.join(ACK_MODES)}", code="ack_invalid", pointer="/ack/mode")
    if not _ACK_LEAST_MS <= timeout <= _ACK_MOST_MS:
        message = f"ack.timeout_ms must be from {_ACK_LEAST_MS} to {_ACK_MOST_MS:,}"
        raise BusRefused(message, code="ack_invalid", pointer="/ack/timeout_ms")
    return Ack(mode) if mode == "none" else Ack(mode, timeout)
