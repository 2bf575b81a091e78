"""The A2A 1.0 projection: what a subscriber of an A2A task is sent, wire by wire.

A function of (A2A task so far, wire), run from `a2a-task-state-map.json` (`redkey.wire.a2a_contract`). All attempts of
a task are one A2A task: it begins with a Task snapshot, never goes back to its first state, and closes when it is
terminal. Objects are those of an A2A stream: `{"task": ...}`, `{"statusUpdate": ...}` or `{"artifactUpdate": ...}`.
A snapshot always equals what a subscriber gets by applying these objects one after another.

Pass the wires that applied, in order; void ones were refused by the reducers and are not projected. What people wrote
is content, looked up by ref when an object is rendered and left out once it is erased. The projection keeps refs only.
Claims, senders and places in the ledger are never projected.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from redkey.wire.a2a_contract import Rule, projection
from redkey.wire.ids import parse_stream

# The metadata keys RedKey writes; their values are strings, because A2A makes every number a double.
ARTIFACT_METADATA = "redkey.artifact"
# The percentage of a progress report is under this key.
PROGRESS_METADATA = "redkey.progress"
# Under this key a document keeps the A2A message that it came from, as it was sent.
MESSAGE = "a2a"
# Contexts that an A2A client named have this prefix on the ledger, so that they never meet those of queues and runs.
CONTEXT = "a2a:"
# The output of a completion is an artifact under this id and name.
OUTPUT = "output"

Ref = Mapping[str, Any]
Document = Mapping[str, Any]
# The document that a ref names, or None when it is erased or not here.
Content = Callable[[Ref], Document | None]
Json = dict[str, Any]
# The part for an artifact whose bytes are kept here: (hash, media type, name); None when they are elsewhere.
Bodies = Callable[[str, str, str], Json | None]


class Said(msgspec.Struct, frozen=True):
    """A message by ref; `plain` is what remains without its content, `plan_task` which task of a plan it is."""

    message_id: str
    role: str
    ref: Ref
    plain: str = ""
    reference_task_ids: tuple[str, ...] = ()
    plan_task: str = ""
    # How much of the work is done, where the message is a progress report that says so.
    percent: int | None = None


class Made(msgspec.Struct, frozen=True):
    """An artifact by ref, as the last wire described it; the output of a completion has no hash of its own."""

    artifact_id: str
    name: str
    ref: Ref
    sha256: str = ""
    about: Mapping[str, str] = {}


class A2ATask(msgspec.Struct, frozen=True):
    """The A2A task so far. `status_place` is where the status message belongs in the history."""

    task_id: str
    context_id: str
    state: str
    timestamp: str | None = None
    status: Said | None = None
    status_place: int = 0
    history: tuple[Said, ...] = ()
    artifacts: Mapping[str, Made] = {}
    parent_task_id: str = ""
    correlation_id: str = ""

    @property
    def closed(self) -> bool:
        """Whether the task is terminal: nothing more is ever sent about it."""
        return self.state in projection().terminal

    @property
    def interrupted(self) -> bool:
        """Whether the task waits for its client."""
        return self.state in projection().interrupted


def no_bodies(sha256: str, media_type: str, name: str) -> Json | None:
    """No artifact's bytes are kept here."""
    return None


def project(
    so_far: A2ATask | None, wire: Json, content: Content, at: str | None = None, bodies: Bodies = no_bodies
) -> tuple[A2ATask | None, list[Json]]:
    """The A2A task after a wire that applied, and what its subscribers are sent; `at` is the canonical time."""
    rules = projection().rules.get(wire["type"])
    if rules is None or (so_far is not None and so_far.closed):
        return so_far, []
    rule = next(rule for rule in rules if rule.holds(so_far is None, wire["payload"]))
    if so_far is None:
        # Nothing is sent about a task before its beginning.
        if rule.object != "task":
            return None, []
        task = _begin(rule, wire, at)
        return task, [snapshot(task, content, bodies)]
    task, tells_status = _after(so_far, rule, wire, at)
    sent: list[Json] = []
    for artifact_id, made in task.artifacts.items():
        if so_far.artifacts.get(artifact_id) is not made:
            artifact = _artifact(made, content, bodies)
            if artifact is not None:
                sent.append({"artifactUpdate": _ids(task) | {"artifact": artifact, "lastChunk": True}})
    if tells_status:
        sent.append({"statusUpdate": _ids(task) | {"status": _status(task, content)}})
    return task, sent


def snapshot(task: A2ATask, content: Content, bodies: Bodies = no_bodies) -> Json:
    """The task as it is now: the first object of any subscription, and what GetTask answers."""
    found: Json = {"id": task.task_id, "contextId": shown_context(task.context_id), "status": _status(task, content)}
    history = [_message(task, said, content) for said in task.history]
    # Messages of the agent whose words were erased have nothing left to show.
    found["history"] = [one for one in history if one["role"] == "ROLE_USER" or one["parts"] != _NOTHING]
    artifacts = [_artifact(made, content, bodies) for made in task.artifacts.values()]
    found["artifacts"] = [one for one in artifacts if one is not None]
    return {"task": {name: value for name, value in found.items() if value != []}}


def shown_context(context_id: str) -> str:
    """A context as A2A clients name it."""
    return context_id.removeprefix(CONTEXT)


def _begin(rule: Rule, wire: Json, at: str | None) -> A2ATask:
    stream, payload = wire["stream"], wire["payload"]
    references = tuple(stream.get("reference_task_ids") or ())
    asked = Said(
        _message_id(wire),
        "ROLE_USER",
        payload["content_ref"],
        reference_task_ids=references,
        plan_task=payload.get("plan_task") or "",
    )
    return A2ATask(
        task_id=parse_stream(stream["stream_id"]).subject,
        context_id=stream["context_id"],
        state=rule.to,
        timestamp=_time(at or wire["ts"]),
        history=(asked,),
        parent_task_id=stream.get("parent_task_id") or "",
        # The context is the correlation of a wire that names no other.
        correlation_id=stream.get("correlation_id") or stream["context_id"],
    )


def _after(task: A2ATask, rule: Rule, wire: Json, at: str | None) -> tuple[A2ATask, bool]:
    """The task after a wire, and whether subscribers get its status."""
    payload, event = wire["payload"], wire["type"]
    if event == "artifact.ready":
        made = _made(payload)
        return msgspec.structs.replace(task, artifacts={**task.artifacts, made.artifact_id: made}), False
    said: Said | None
    if event == "message.added":
        role = "ROLE_USER" if payload["role"] == "human" else "ROLE_AGENT"
        said = Said(payload["message_id"], role, payload["parts_ref"])
        if rule.object == "none" or task.interrupted:
            # A question stays in the status until it is answered.
            return msgspec.structs.replace(task, history=(*task.history, said)), False
    else:
        said = _reason(wire)
    after = msgspec.structs.replace(task, state=_to(task.state, rule.to))
    # A state that stays is told again when it no longer says what the last status said.
    if rule.object != "status" and task.state == after.state and task.status is None:
        return after, False
    history = task.history
    if task.status is not None:
        # What a status said belongs to the history once another status takes its place.
        history = (*history[: task.status_place], task.status, *history[task.status_place :])
    if payload.get("answer_ref") is not None:
        history = (*history, Said(_message_id(wire), "ROLE_USER", payload["answer_ref"]))
    artifacts = task.artifacts
    if event == "task.complete" and payload.get("output_ref") is not None:
        artifacts = {**artifacts, OUTPUT: Made(OUTPUT, OUTPUT, payload["output_ref"])}
    told = msgspec.structs.replace(
        after,
        timestamp=_time(at or wire["ts"]),
        status=said,
        status_place=len(history),
        history=history,
        artifacts=artifacts,
    )
    return told, True


def _to(state: str, to: str) -> str:
    if to == "same":
        return state
    if to == "resume":
        return "TASK_STATE_WORKING" if state in projection().interrupted else state
    return to


def _reason(wire: Json) -> Said | None:
    """What a status says beside its state: how the work goes, why it stopped or failed, what came of it."""
    payload = wire["payload"]
    if wire["type"] == "task.progress":
        percent = payload.get("percent")
        plain = "" if percent is None else f"{percent} %"
        return Said(_message_id(wire), "ROLE_AGENT", payload.get("text_ref") or {}, plain, percent=percent)
    ref, blocker = payload.get("reason_ref") or payload.get("output_ref"), payload.get("blocker_type")
    if ref is None:
        return None
    # Without content a blocker still has its name; the kind of a failure tells of leases, which stay inside.
    return Said(_message_id(wire), "ROLE_AGENT", ref, f"blocked: {blocker}" if blocker else "")


def _made(payload: Json) -> Made:
    about = {name: str(payload[name]) for name in ("sha256", "version", "bytes", "readiness")}
    return Made(payload["artifact_id"], payload["name"], payload["content_ref"], payload["sha256"], about)


def _ids(task: A2ATask) -> Json:
    return {"taskId": task.task_id, "contextId": shown_context(task.context_id)}


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
    document = (content(said.ref) if said.ref else None) or {}
    if said.plan_task:
        tasks = document.get("plan", {}).get("tasks", ())
        document = next((one for one in tasks if one.get("id") == said.plan_task), {})
    sent: Document = document.get(MESSAGE) or {}
    message: Json = {
        "messageId": sent.get("messageId") or said.message_id,
        **_ids(task),
        "role": said.role,
        "parts": sent.get("parts") or _parts(document) or [{"text": said.plain}],
    }
    for name in ("metadata", "extensions"):
        if sent.get(name):
            message[name] = sent[name]
    if said.percent is not None:
        message["metadata"] = {PROGRESS_METADATA: {"percent": str(said.percent)}}
    references = said.reference_task_ids or tuple(sent.get("referenceTaskIds", ()))
    if references:
        message["referenceTaskIds"] = list(references)
    return message


def _parts(document: Document) -> list[Json]:
    """The parts of a message document, or the words and input of a document that has none."""
    if document.get("parts"):
        return [_part(part) for part in document["parts"]]
    names = ("title", "description", "text", "reason", "suggested_resolution", "answer", "summary")
    parts: list[Json] = [{"text": text} for text in (_field(document, name) for name in names) if text]
    return [*parts, {"data": document["input"]}] if document.get("input") is not None else parts


def _part(part: Document) -> Json:
    kind = part["kind"]
    if kind == "text":
        made: Json = {"text": part["text"]}
    elif kind == "file_ref":
        made = {"url": part["uri"]}
    elif kind == "artifact_ref":
        made = {"data": {"artifactId": _field(part, "artifact_id")}}
    else:
        made = {"data": part["data"]}
    if media_type := _field(part, "media_type"):
        made["mediaType"] = media_type
    if part.get("name"):
        made["filename"] = part["name"]
    return made


def _artifact(made: Made, content: Content, bodies: Bodies) -> Json | None:
    """The artifact as A2A shows it; None for an output that says nothing or was erased."""
    document = content(made.ref) or {}
    if made.artifact_id == OUTPUT:
        value = document.get("output")
        if value is None:
            return None
        part: Json = {"text": value} if isinstance(value, str) else {"data": value, "mediaType": "application/json"}
        return {"artifactId": OUTPUT, "name": OUTPUT, "parts": [part]}
    media_type, uri = _field(document, "media_type") or "", document.get("uri")
    part = {"url": uri} if uri else bodies(made.sha256, media_type, made.name) or {"url": _hash_uri(made.sha256)}
    if media_type:
        part["mediaType"] = media_type
    metadata = {ARTIFACT_METADATA: dict(made.about)}
    return {"artifactId": made.artifact_id, "name": made.name, "parts": [part], "metadata": metadata}


def _field(document: Document, name: str) -> Any:
    """A field by its name on wires, or as documents of the API spell it: `media_type` is `mediaType` there."""
    head, *rest = name.split("_")
    return document.get(head + "".join(word.capitalize() for word in rest)) or document.get(name)


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
