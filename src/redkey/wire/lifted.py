"""The result of lifting an older wire, the state of its log, and the ids that 1.1 requires."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any

import msgspec

from redkey.errors import Finding
from redkey.wire import files
from redkey.wire.card import role_name
from redkey.wire.catalogue import SCHEMAS
from redkey.wire.ids import hashed_ulid

# 1.0 has no workspaces; no real workspace has this id.
NO_WORKSPACE = "wk_" + "0" * 26


class Content(msgspec.Struct, frozen=True):
    """A JSON document outside the ledger; a lifted wire names it by hash."""

    data: bytes

    @property
    def ref(self) -> dict[str, Any]:
        return {"sha256": sha256(self.data).hexdigest(), "bytes": len(self.data)}


class Lifted(msgspec.Struct, frozen=True):
    """The 1.1 wires of an older message, in the order in which to write them."""

    wires: tuple[dict[str, Any], ...]
    content: tuple[Content, ...] = ()
    lost: tuple[Finding, ...] = ()
    assumed: tuple[Finding, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "wires": list(self.wires),
            "content": [{**item.ref, "document": msgspec.json.decode(item.data)} for item in self.content],
            "lost": [finding.as_json() for finding in self.lost],
            "assumed": [finding.as_json() for finding in self.assumed],
        }


@dataclass(slots=True)
class Log:
    """The state of one log so far; pass the same object to `lift` for each message in order."""

    workspace_id: str = NO_WORKSPACE
    places: dict[str, int] = field(default_factory=dict)  # the last stream_seq of each stream
    contexts: dict[str, str] = field(default_factory=dict)  # the context of each task, from its brief
    claims: dict[tuple[str, str], int] = field(default_factory=dict)  # how often an agent claimed a task


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(files.load(f"{SCHEMAS}/types.schema.json")["$defs"][name]["pattern"])


def fits(name: str, text: str) -> bool:
    """Return whether a text is a 1.1 id of this kind."""
    return _pattern(name).fullmatch(text) is not None


def hashed(prefix: str, data: bytes) -> str:
    """Return an id whose ULID is the beginning of a SHA-256."""
    return f"{prefix}_{hashed_ulid(data)}"


def named(name: str, text: str) -> str:
    """Return an id with this name, or with a hash of it if the name is too long for 1.1."""
    return text if fits(name, text) else hashed(name.removesuffix("_id"), text.encode())


def agent_id(slug: str) -> str:
    """Return the id of an agent that an older wire names by slug."""
    return slug if fits("agent_id", slug) else hashed("agt", slug.encode())


def role_id(name: str) -> str:
    """Return the id of a role that an older wire names in one of three spellings."""
    return named("role_id", f"role_{role_name(name)}")


def claim_id(task_id: str, agent: str, turn: int) -> str:
    """Return the id of a claim that had none, from the task, the agent and how often it claimed the task."""
    return hashed("clm", f"{task_id}\n{agent}\n{turn}".encode())


def lost(pointer: str, message: str) -> Finding:
    """Report something that 1.1 cannot express; the pointer is into the older message."""
    return Finding("lift_lost", pointer, message, "warning")


def assumed(pointer: str, message: str) -> Finding:
    """Report something that 1.1 needs and the older message does not have; the pointer is into the lifted wire."""
    return Finding("lift_assumed", pointer, message, "warning")
