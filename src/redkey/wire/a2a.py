"""The A2A 1.0 projection: what a subscriber of an A2A task is sent, wire by wire.

`project` maps the A2A task so far and one wire to the next A2A task and the objects to send, by the rules in
`a2a-task-state-map.json` (`redkey.wire.a2a_contract`). All attempts of a task are one A2A task: it begins with a Task
snapshot, never returns to its first state, and closes in a terminal state. The objects are those of an A2A stream:
`{"task": ...}`, `{"statusUpdate": ...}` or `{"artifactUpdate": ...}`. A subscriber that applies them in order
always has the task that `snapshot` returns.

Pass the wires that the reducers applied, in order; leave out void ones. Texts are content: the projection stores only
their refs, looks them up when it renders an object, and omits them after they were erased. Claims, senders and ledger
positions are never projected.
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
# A document stores the original A2A message under this key.
MESSAGE = "a2a"
# Contexts named by A2A clients have this prefix on the ledger, so they cannot collide with those of queues and runs.
CONTEXT = "a2a:"
# The output of a completion is an artifact with this id and name.
OUTPUT = "output"

Ref = Mapping[str, Any]
Document = Mapping[str, Any]
# Returns the document of a ref, or None if it was erased or is not stored here.
Content = Callable[[Ref], Document | None]
Json = dict[str, Any]
# Returns the A2A part for an artifact (hash, media type, name), or None if its bytes are not stored here.
Bodies = Callable[[str, str, str], Json | None]

# The URI of the A2A extension for ledger data: clients get it if they ask for it, and send the parent or correlation of
# a task, or their own extensions, under it.
LEDGER = "urn:redkey:a2a:ledger:1"


class Said(msgspec.Struct, frozen=True):
    """A message by ref; `plain` is the text shown without its content, `plan_task` the id of its task in a plan."""

    message_id: str
    role: str
    ref: Ref
    plain: str = ""
    reference_task_ids: tuple[str, ...] = ()
    plan_task: str = ""
    # The percentage of a progress report that has one.
    percent: int | None = None


class Made(msgspec.Struct, frozen=True):
    """An artifact by ref, as the last wire described it; the output of a completion has no hash."""

    artifact_id: str
    name: str
    ref: Ref
    sha256: str = ""
    about: Mapping[str, str] = {}


class A2ATask(msgspec.Struct, frozen=True):
    """The A2A task so far. `status_place` is the index of the status message in the history."""

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
    # The extensions of the wire that created the task.
    extensions: Mapping[str, Any] = {}

    @property
    def closed(self) -> bool:
        """Whether the task is in a terminal state; nothing more is sent about it."""
        return self.state in projection().terminal

    @property
    def interrupted(self) -> bool:
        """Whether the task waits for its client."""
        return self.state in projection().interrupted


def no_bodies(sha256: str, media_type: str, name: str) -> Json | None:
    """Return None: no artifact's bytes are stored here."""
    return None


def project(
    so_far: A2ATask | None, wire: Json, content: Content, at: str | None = None, bodies: Bodies = no_bodies
) -> tuple[A2ATask | None, list[Json]]:
    """Return the A2A task after an applied wire, and the objects to send; `at` is the ledger time of the wire."""
    rules = projection().rules.get(wire["type"])
    if rules is None or (so_far is not None and so_far.closed):
        return so_far, []
    rule = next(rule for rule in rules if rule.holds(so_far is None, wire["payload"]))
    if so_far is None:
        # Nothing is sent before the wire that creates the task.
        if rule.object != "task":
            return None, []
        task = _begin(rule, wire, at)
        return task, [snapshot(task, content, bodies)]
    task, sends_status = _after(so_far, rule, wire, at)
    sent: list[Json] = []
    for artifact_id, made in task.artifacts.items():
        if so_far.artifacts.get(artifact_id) is not made:
            artifact = _artifact(made, content, bodies)
            if artifact is not None:
                sent.append({"artifactUpdate": _ids(task) | {"artifact": artifact, "lastChunk": True}})
    if sends_status:
        sent.append({"statusUpdate": _ids(task) | {"status": _status(task, content)}})
    return task, sent


def cannot_change(task: A2ATask, event: str) -> bool:
    """Return whether no wire of this type can change the task or be sent to its subscribers.

    Such a type only resumes an interrupted task, or clears the message of a status.
    """
    rules = projection().rules.get(event)
    if rules is None or task.closed:
        return True
    if task.interrupted or task.status is not None:
        return False
    return all(rule.to == "resume" and rule.object == "status_if_changed" for rule in rules if "first" not in rule.when)


def snapshot(task: A2ATask, content: Content, bodies: Bodies = no_bodies) -> Json:
    """Return the current task: the first object of every subscription, and the reply of GetTask."""
    shown: Json = {"id": task.task_id, "contextId": shown_context(task.context_id), "status": _status(task, content)}
    history = [_message(task, said, content) for said in task.history]
    # Omit messages of the agent whose content was erased.
    shown["history"] = [
        message for message in history if message["role"] == "ROLE_USER" or message["parts"] != _NOTHING
    ]
    artifacts = [_artifact(made, content, bodies) for made in task.artifacts.values()]
    shown["artifacts"] = [artifact for artifact in artifacts if artifact is not None]
    return {"task": {name: value for name, value in shown.items() if value != []}}


def shown_context(context_id: str) -> str:
    """Return a context id as A2A clients know it."""
    return context_id.removeprefix(CONTEXT)


def _begin(rule: Rule, wire: Json, at: str | None) -> A2ATask:
    stream, payload = wire["stream"], wire["payload"]
    references = tuple(stream.get("reference_task_ids") or ())
    request = Said(
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
        history=(request,),
        parent_task_id=stream.get("parent_task_id") or "",
        # Without an explicit correlation id, the context id is the correlation id.
        correlation_id=stream.get("correlation_id") or stream["context_id"],
        extensions=wire.get("extensions") or {},
    )


def _after(task: A2ATask, rule: Rule, wire: Json, at: str | None) -> tuple[A2ATask, bool]:
    """Return the task after a wire, and whether subscribers get its status."""
    payload, event = wire["payload"], wire["type"]
    if event == "artifact.ready":
        made = _made(payload)
        return msgspec.structs.replace(task, artifacts={**task.artifacts, made.artifact_id: made}), False
    said: Said | None
    if event == "message.added":
        role = "ROLE_USER" if payload["role"] == "human" else "ROLE_AGENT"
        said = Said(payload["message_id"], role, payload["parts_ref"])
        if rule.object == "none" or task.interrupted:
            # A question remains the status message until it is answered.
            return msgspec.structs.replace(task, history=(*task.history, said)), False
    else:
        said = _reason(wire)
    after = msgspec.structs.replace(task, state=_to(task.state, rule.to))
    # An unchanged state is sent again only if the last status had a message, which no longer holds.
    if rule.object != "status" and task.state == after.state and task.status is None:
        return after, False
    history = task.history
    if task.status is not None:
        # The message of the previous status moves to the history.
        history = (*history[: task.status_place], task.status, *history[task.status_place :])
    if payload.get("answer_ref") is not None:
        history = (*history, Said(_message_id(wire), "ROLE_USER", payload["answer_ref"]))
    artifacts = task.artifacts
    if event == "task.complete" and payload.get("output_ref") is not None:
        artifacts = {**artifacts, OUTPUT: Made(OUTPUT, OUTPUT, payload["output_ref"])}
    updated = msgspec.structs.replace(
        after,
        timestamp=_time(at or wire["ts"]),
        status=said,
        status_place=len(history),
        history=history,
        artifacts=artifacts,
    )
    return updated, True


def _to(state: str, to: str) -> str:
    if to == "same":
        return state
    if to == "resume":
        return "TASK_STATE_WORKING" if state in projection().interrupted else state
    return to


def _reason(wire: Json) -> Said | None:
    """Return the message of a status: progress, the reason of a block or failure, or the result."""
    payload = wire["payload"]
    if wire["type"] == "task.progress":
        percent = payload.get("percent")
        plain = "" if percent is None else f"{percent} %"
        return Said(_message_id(wire), "ROLE_AGENT", payload.get("text_ref") or {}, plain, percent=percent)
    ref, blocker = payload.get("reason_ref") or payload.get("output_ref"), payload.get("blocker_type")
    if ref is None:
        return None
    # Without content, a block still shows its type. The kind of a failure is not shown: it can be about leases.
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


# The parts of a message without text: A2A demands at least one part.
_NOTHING: list[Json] = [{"text": ""}]


def _message(task: A2ATask, said: Said, content: Content) -> Json:
    document = (content(said.ref) if said.ref else None) or {}
    if said.plan_task:
        tasks = document.get("plan", {}).get("tasks", ())
        document = next((task_plan for task_plan in tasks if task_plan.get("id") == said.plan_task), {})
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
    """Return the parts of a message document; for other documents, their texts and input as parts."""
    if document.get("parts"):
        return [_part(part) for part in document["parts"]]
    names = ("title", "description", "text", "reason", "suggested_resolution", "answer", "summary")
    parts: list[Json] = [{"text": text} for text in (_field(document, name) for name in names) if text]
    return [*parts, {"data": document["input"]}] if document.get("input") is not None else parts


def _part(part: Document) -> Json:
    kind = part["kind"]
    if kind == "text":
        shown: Json = {"text": part["text"]}
    elif kind == "file_ref":
        shown = {"url": part["uri"]}
    elif kind == "artifact_ref":
        shown = {"data": {"artifactId": _field(part, "artifact_id")}}
    else:
        shown = {"data": part["data"]}
    if media_type := _field(part, "media_type"):
        shown["mediaType"] = media_type
    if part.get("name"):
        shown["filename"] = part["name"]
    return shown


def _artifact(made: Made, content: Content, bodies: Bodies) -> Json | None:
    """Return the artifact as A2A shows it; None for an output that is empty or was erased."""
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
    """Return a field by its name in the API (`mediaType`) or on wires (`media_type`)."""
    head, *rest = name.split("_")
    return document.get(head + "".join(word.capitalize() for word in rest)) or document.get(name)


def _hash_uri(sha256: str) -> str:
    """Return the URI of bytes by their hash (RFC 6920), for an artifact without another URI."""
    return "ni:///sha-256;" + urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip("=")


def _message_id(wire: Json) -> str:
    return "msg_" + str(wire["wire_id"]).removeprefix("wire_")


def _time(text: str) -> str | None:
    """Return the time if its date exists: a schema accepts 30 February, A2A does not."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return None
    return text
