"""The A2A 1.0 projection: what a subscriber of an A2A task is told, wire by wire.

A function of (A2A task so far, wire), run from `a2a-task-state-map.json`. All attempts of a task are one A2A
task: it begins with a Task snapshot, never goes back to its first state, and closes when it is terminal.
Objects are those of an A2A stream: `{"task": ...}`, `{"statusUpdate": ...}` or `{"artifactUpdate": ...}`.

Hand in the wires that applied, in order; void ones were refused by the reducers and are nobody's business.
What people wrote is content, looked up by ref when an object is made and left out once it is erased. The
projection keeps refs only. Who claimed, who sent and where it stands in the ledger never leave by this door.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from redkey.errors import ContractBroken
from redkey.wire.catalogue import catalogue, contract
from redkey.wire.ids import parse_stream

FILE = "a2a-task-state-map.json"
# The one metadata key RedKey writes; its values are strings, because A2A makes every number a double.
ARTIFACT_METADATA = "redkey.artifact"

Ref = Mapping[str, Any]
# The document that a ref names, or None when it is erased or not here.
Content = Callable[[Ref], Mapping[str, Any] | None]
Json = dict[str, Any]


class Said(msgspec.Struct, frozen=True):
    """A message by ref; `plain` is what remains to be said without its content."""

    message_id: str
    role: str
    ref: Ref
    plain: str = ""
    reference_task_ids: tuple[str, ...] = ()


class Made(msgspec.Struct, frozen=True):
    """An artifact by ref, as the last wire told it."""

    artifact_id: str
    name: str
    ref: Ref
    sha256: str
    about: Mapping[str, str]


class A2ATask(msgspec.Struct, frozen=True):
    """The A2A task so far."""

    task_id: str
    context_id: str
    state: str
    timestamp: str | None = None
    status: Said | None = None
    history: tuple[Said, ...] = ()
    artifacts: Mapping[str, Made] = {}

    @property
    def closed(self) -> bool:
        """Whether the task is terminal: nothing more is ever said about it."""
        return self.state in _projection().terminal


class Rule(msgspec.Struct, frozen=True):
    """One line of the contract: under these conditions, to this state, with this object."""

    when: Mapping[str, Any]
    to: str
    object: str

    def holds(self, first: bool, payload: Mapping[str, Any]) -> bool:
        for field, wanted in self.when.items():
            value = first if field == "first" else payload.get(field)
            if value not in wanted if isinstance(wanted, list) else value != wanted:
                return False
        return True


class Projection(msgspec.Struct, frozen=True):
    """The compiled contract."""

    terminal: frozenset[str]
    interrupted: frozenset[str]
    rules: Mapping[str, tuple[Rule, ...]]


def project(
    so_far: A2ATask | None, wire: Json, content: Content, at: str | None = None
) -> tuple[A2ATask | None, list[Json]]:
    """The A2A task after a wire that applied, and what its subscribers are sent; `at` is the canonical time."""
    rules = _projection().rules.get(wire["type"])
    if rules is None or (so_far is not None and so_far.closed):
        return so_far, []
    rule = next(rule for rule in rules if rule.holds(so_far is None, wire["payload"]))
    if so_far is None:
        # Nothing is told of a task before its beginning.
        return _begin(rule, wire, content, at) if rule.object == "task" else (None, [])
    task = _after(so_far, rule, wire, at)
    if rule.object == "artifact":
        return task, [_artifact_update(task, wire["payload"]["artifact_id"], content)]
    if rule.object == "status" or (rule.object == "status_if_changed" and task.state != so_far.state):
        return task, [{"statusUpdate": _ids(task) | {"status": _status(task, content)}}]
    return task, []


def snapshot(task: A2ATask, content: Content) -> Json:
    """The task as it is now: the first object of any subscription, and what GetTask answers."""
    found: Json = {"id": task.task_id, "contextId": task.context_id, "status": _status(task, content)}
    if task.history:
        found["history"] = [_message(task, said, content) for said in task.history]
    if task.artifacts:
        found["artifacts"] = [_artifact(made, content) for made in task.artifacts.values()]
    return {"task": found}


def _begin(rule: Rule, wire: Json, content: Content, at: str | None) -> tuple[A2ATask, list[Json]]:
    stream = wire["stream"]
    asked = Said(
        _message_id(wire),
        "ROLE_USER",
        wire["payload"]["content_ref"],
        reference_task_ids=tuple(stream.get("reference_task_ids") or ()),
    )
    task = A2ATask(
        task_id=parse_stream(stream["stream_id"]).subject,
        context_id=stream["context_id"],
        state=rule.to,
        timestamp=_time(at or wire["ts"]),
        history=(asked,),
    )
    return task, [snapshot(task, content)]


def _after(task: A2ATask, rule: Rule, wire: Json, at: str | None) -> A2ATask:
    payload = wire["payload"]
    if wire["type"] == "message.added":
        role = "ROLE_USER" if payload["role"] == "human" else "ROLE_AGENT"
        said = Said(payload["message_id"], role, payload["parts_ref"])
        return msgspec.structs.replace(task, history=(*task.history, said))
    if rule.object == "artifact":
        made = _made(payload)
        return msgspec.structs.replace(task, artifacts={**task.artifacts, made.artifact_id: made})
    to = _to(task.state, rule.to)
    told = rule.object == "status" or to != task.state
    # A reason lasts until the next wire about the work, even one that subscribers need not be told of.
    return msgspec.structs.replace(
        task, state=to, timestamp=_time(at or wire["ts"]) if told else task.timestamp, status=_reason(wire)
    )


def _to(state: str, to: str) -> str:
    if to == "same":
        return state
    if to == "resume":
        return "TASK_STATE_WORKING" if state in _projection().interrupted else state
    return to


def _reason(wire: Json) -> Said | None:
    """What a status says beside its state: why the work stands still, or why an attempt failed."""
    payload = wire["payload"]
    ref, blocker = payload.get("reason_ref"), payload.get("blocker_type")
    if ref is None:
        return None
    # Without content a blocker still has its name; the kind of a failure tells of leases, which stay inside.
    return Said(_message_id(wire), "ROLE_AGENT", ref, f"blocked: {blocker}" if blocker else "")


def _made(payload: Json) -> Made:
    about = {name: str(payload[name]) for name in ("sha256", "version", "bytes", "readiness")}
    return Made(payload["artifact_id"], payload["name"], payload["content_ref"], payload["sha256"], about)


def _ids(task: A2ATask) -> Json:
    return {"taskId": task.task_id, "contextId": task.context_id}


def _status(task: A2ATask, content: Content) -> Json:
    status: Json = {"state": task.state}
    if task.timestamp is not None:
        status["timestamp"] = task.timestamp
    message = None if task.status is None else _message(task, task.status, content)
    if message is not None and message["parts"] != _NOTHING:
        status["message"] = message
    return status


# A message has at least one part; this is one without a word.
_NOTHING: list[Json] = [{"text": ""}]


def _message(task: A2ATask, said: Said, content: Content) -> Json:
    parts = _parts(content(said.ref) or {}) or [{"text": said.plain}]
    message = {"messageId": said.message_id, **_ids(task), "role": said.role, "parts": parts}
    if said.reference_task_ids:
        message["referenceTaskIds"] = list(said.reference_task_ids)
    return message


def _parts(document: Mapping[str, Any]) -> list[Json]:
    """The parts of a message document, or the text and input of a document that has none."""
    if document.get("parts"):
        return [_part(part) for part in document["parts"]]
    texts = [document.get(name) for name in ("title", "reason", "suggested_resolution")]
    parts: list[Json] = [{"text": text} for text in texts if text]
    return [*parts, {"data": document["input"]}] if document.get("input") is not None else parts


def _part(part: Mapping[str, Any]) -> Json:
    kind = part["kind"]
    if kind == "text":
        made: Json = {"text": part["text"]}
    elif kind == "file_ref":
        made = {"url": part["uri"]}
    elif kind == "artifact_ref":
        made = {"data": {"artifactId": part["artifact_id"]}}
    else:
        made = {"data": part["data"]}
    if part.get("media_type"):
        made["mediaType"] = part["media_type"]
    if part.get("name"):
        made["filename"] = part["name"]
    return made


def _artifact_update(task: A2ATask, artifact_id: str, content: Content) -> Json:
    artifact = _artifact(task.artifacts[artifact_id], content)
    return {"artifactUpdate": _ids(task) | {"artifact": artifact, "lastChunk": True}}


def _artifact(made: Made, content: Content) -> Json:
    document = content(made.ref) or {}
    part: Json = {"url": document.get("uri") or _hash_uri(made.sha256)}
    if document.get("media_type"):
        part["mediaType"] = document["media_type"]
    return {
        "artifactId": made.artifact_id,
        "name": made.name,
        "parts": [part],
        "metadata": {ARTIFACT_METADATA: dict(made.about)},
    }


def _hash_uri(sha256: str) -> str:
    """The name that bytes have by their hash alone (RFC 6920), for an artifact whose place is not known."""
    return "ni:///sha-256;" + urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip("=")


def _message_id(wire: Json) -> str:
    return "msg_" + str(wire["wire_id"]).removeprefix("wire_")


def _time(text: str) -> str | None:
    """The time, if the calendar has it: a schema lets 30 February pass, A2A does not."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return None
    return text


@cache
def _projection() -> Projection:
    return compile_projection(contract(FILE))


_OBJECTS = ("task", "status", "status_if_changed", "artifact", "none")


def compile_projection(table: Any) -> Projection:
    """The contract, compiled; ContractBroken when it names what nobody knows or lets a task go back."""
    try:
        states = table["states"]
        rules = {event: tuple(_rule(row, states) for row in rows) for event, rows in table["events"].items()}
        _check(rules, table["interrupted"], states)
        terminal = frozenset(state for state, kind in states.items() if kind["terminal"])
        return Projection(terminal, frozenset(table["interrupted"]), rules)
    except (KeyError, TypeError, AttributeError) as cause:
        raise ContractBroken(f"{FILE}: {type(cause).__name__}: {cause}") from cause


def _rule(row: Json, states: Json) -> Rule:
    if row["to"] not in states and row["to"] not in ("same", "resume"):
        raise ContractBroken(f"{FILE}: state {row['to']!r} is not known")
    if row["object"] not in _OBJECTS:
        raise ContractBroken(f"{FILE}: object {row['object']!r} is not known")
    return Rule(row.get("when", {}), row["to"], row["object"])


def _check(rules: Mapping[str, tuple[Rule, ...]], interrupted: list[str], states: Json) -> None:
    for event, listed in rules.items():
        if event not in catalogue():
            raise ContractBroken(f"{FILE}: event type {event!r} is not known")
        if not listed or listed[-1].when:
            raise ContractBroken(f"{FILE}: the last rule of {event} must hold without condition")
    first = {rule.to for listed in rules.values() for rule in listed if rule.when.get("first")}
    for event, listed in rules.items():
        if any((rule.to in first or rule.object == "task") and not rule.when.get("first") for rule in listed):
            raise ContractBroken(f"{FILE}: {event} takes a task back to its first state")
    unknown = sorted({*interrupted, "TASK_STATE_WORKING"} - set(states))
    if unknown:
        raise ContractBroken(f"{FILE}: state {unknown[0]!r} is not known")
