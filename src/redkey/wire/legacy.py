"""Agent Wire 1.0: its five messages, validated against `definitions/wire/` and read into structs.

The schemas are the contract; the structs only hold what they allow. `lint` checks prose; `lift` translates a 1.0
message to 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import msgspec

from redkey.errors import Finding, WireRefused
from redkey.wire.schema import compile_schema
from redkey.wire.validate import KNOWN_VERSIONS

VERSION: Final = "1.0"
SCHEMAS = "definitions/wire"
FIXTURES = "fixtures/agent-wire/v1.0"


class OutputContract(msgspec.Struct, frozen=True):
    """What a task must produce, and how that is checked."""

    type: Literal["file", "json", "pr", "message", "report"]
    output_ref_required: bool
    min_length: int
    schema_ref: str | None = None
    evaluate: str | None = None


class Env(msgspec.Struct, frozen=True):
    """Where the work is done: client, task, project and checkout."""

    client_id: str
    # The server fills in task and project: the author of a brief does not know the task id.
    task_id: str | None = None
    project_id: str | None = None
    repo_url: str | None = None
    worktree_path: str | None = None


class Brief(msgspec.Struct, frozen=True):
    """A task brief."""

    goal: str
    constraints: tuple[str, ...]
    acceptance_criteria: tuple[str, ...]
    output_contract: OutputContract
    escalation_triggers: tuple[str, ...]
    env: Env
    context: str | None = None


class Inbox(msgspec.Struct, frozen=True):
    """A message to an agent or to a human; priority 1 is the most urgent."""

    to_agent: str
    priority: int
    message_type: Literal["task.feedback", "status.update", "task.blocked", "exec.gate", "question", "info"]
    subject: str
    body: str
    action_required: bool
    ref_task_id: str | None = None


class Verification(msgspec.Struct, frozen=True):
    """The checks of a finished task."""

    mechanical: Literal["pass", "fail"]
    semantic: Literal["pass", "fail", "skipped"]
    attempts: int


class Complete(msgspec.Struct, frozen=True):
    """The completion of a task."""

    task_id: str
    agent: str
    summary: str
    cost_usd: float
    duration_seconds: float
    verification: Verification
    output_ref: str | None = None


class Blocked(msgspec.Struct, frozen=True):
    """A task that cannot continue."""

    task_id: str
    agent: str
    reason: str
    blocker_type: Literal["spec_gap", "dependency", "tool_failure", "ambiguity", "resource", "verification_fail"]
    attempts: int
    suggested_resolution: str | None = None


class Claim(msgspec.Struct, frozen=True):
    """An agent takes a task in one of its roles."""

    task_id: str
    agent: str
    role: str


Payload = Brief | Inbox | Complete | Blocked | Claim
PAYLOADS: Mapping[str, type[Payload]] = {
    "brief": Brief,
    "inbox": Inbox,
    "complete": Complete,
    "blocked": Blocked,
    "claim": Claim,
}


class LegacyWire(msgspec.Struct, frozen=True):
    """One message of Agent Wire 1.0."""

    type: str
    sender: str
    ts: str
    payload: Payload


def validate_wire_1_0(value: Any) -> list[Finding]:
    """List everything wrong with a decoded 1.0 message; empty if it is valid."""
    envelope = compile_schema(f"{SCHEMAS}/envelope.schema.json")
    if not isinstance(value, dict) or "wire" not in value:
        return envelope.findings(value)
    if value["wire"] != VERSION:
        known = ", ".join(KNOWN_VERSIONS)
        text = f"wire version {repr(value['wire'])[:40]} is not 1.0; known: {known}"
        return [Finding("unknown_version", "/wire", text)]
    kind = value.get("type")
    if not isinstance(kind, str):
        return envelope.findings(value)
    if kind not in PAYLOADS:
        text = f"{kind[:40]!r} is not a message type of Agent Wire 1.0; known: {', '.join(PAYLOADS)}"
        return [Finding("unknown_type", "/type", text)]
    return compile_schema(f"{SCHEMAS}/{kind}.schema.json").findings(value) or _check_time(value["ts"])


def read_wire_1_0(value: Any) -> LegacyWire:
    """Read the 1.0 message in a decoded JSON value; raise WireRefused with every finding if it is not one."""
    findings = validate_wire_1_0(value)
    if findings:
        raise WireRefused(findings)
    # Not strict: JSON Schema accepts 1.0 as an integer, and so must the struct.
    payload = msgspec.convert(value["payload"], PAYLOADS[value["type"]], strict=False)
    return LegacyWire(value["type"], value["sender"], value["ts"], payload)


def utc(ts: str) -> str:
    """Write a 1.0 timestamp as 1.1 does: in UTC, with the same fraction. Raise ValueError if there is no such time."""
    parts = re.fullmatch(r"(.{19})(\.[0-9]+)?(?:Z|([+-])(..):(..))", ts)
    if parts is None:
        raise ValueError(f"{ts!r} is not a timestamp")
    moment, fraction, sign, hours, minutes = parts.groups()
    at = datetime.fromisoformat(moment)
    if sign:
        ahead = timedelta(hours=int(hours), minutes=int(minutes))
        try:
            at = at - ahead if sign == "+" else at + ahead
        except OverflowError as cause:
            raise ValueError(f"{ts} is beyond the years 1 to 9999") from cause
    return f"{at.isoformat()}{fraction or ''}Z"


def _check_time(ts: str) -> list[Finding]:
    try:
        utc(ts)
    except ValueError:
        return [Finding("no_such_time", "/ts", f"the time {ts} does not exist")]
    return []
