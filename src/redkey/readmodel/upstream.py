"""What a claim brings from earlier work: artifacts and notes of the tasks it depends on, and what people said.

All of it comes from data that never changes, so a repeated claim gets the same reply.
"""

from __future__ import annotations

from redkey.commands.due import plan_task_id
from redkey.readmodel.plan_text import plan_text
from redkey.readmodel.rows import entity
from redkey.readmodel.task_view import media_type
from redkey.readmodel.view import Document, Shelf, read_document
from redkey.reducers.entities import Artifact, Task
from redkey.reducers.world import World
from redkey.shapes.tasks import Upstream, UpstreamResult
from redkey.wire.decode import decode

_PAGE = 100
# A task may depend on a thousand others; beyond these limits, read the views of those tasks.
_NOTES_CHARACTERS = 256 * 1024
_RESULTS_BYTES = 256 * 1024


def upstream(reader: Shelf, topic: str, world: World, task: Task, document: Document | None) -> tuple[Upstream, ...]:
    """Return the artifacts of the completed tasks that a task depends on, by task and name."""
    found: list[Upstream] = []
    for key, task_id in _depends_on(reader, topic, world, task, document):
        above = _task(reader, topic, world, task_id)
        if above is not None and above.artifacts and above.state == "completed":
            found += [
                _shown(reader, topic, above, key, artifact)
                for artifact in above.artifacts
                if artifact.readiness != "draft"
            ]
    return tuple(found)


def results(
    reader: Shelf, topic: str, world: World, task: Task, document: Document | None
) -> tuple[UpstreamResult, ...]:
    """Return what the tasks that a task depends on were completed with, in their order."""
    found: list[UpstreamResult] = []
    room = _RESULTS_BYTES
    for key, task_id in _depends_on(reader, topic, world, task, document):
        above = _task(reader, topic, world, task_id)
        if above is None or above.state != "completed" or not above.output_sha256:
            continue
        facts = reader.content_facts(topic, above.output_sha256)
        room -= facts.bytes if facts is not None else 0
        if room < 0:
            break
        said = read_document(reader, topic, above.output_sha256) or {}
        if said.get("output") is not None or said.get("summary"):
            summary = said.get("summary", "")
            found.append(UpstreamResult(task_id=task_id, plan_task_id=key, output=said.get("output"), summary=summary))
    return tuple(found)


def prior_context(reader: Shelf, topic: str, world: World, task: Task, document: Document | None) -> tuple[str, ...]:
    """Return the notes of the tasks before this one, in their order, without names of agents."""
    notes: list[str] = []
    room = _NOTES_CHARACTERS
    for _, task_id in _depends_on(reader, topic, world, task, document):
        above = _task(reader, topic, world, task_id)
        if above is None or not above.output_sha256:
            continue
        text: str = (read_document(reader, topic, above.output_sha256) or {}).get("notes", "")
        room -= len(text)
        if room < 0:
            break
        notes.append(text)
    return tuple(text for text in notes if text)


def _task(reader: Shelf, topic: str, world: World, task_id: str) -> Task | None:
    live = world.tasks.get(task_id)
    if live is not None:
        return live
    row = reader.row(topic, "task", task_id)
    found: Task | None = entity(row) if row is not None else None
    return found


def _shown(reader: Shelf, topic: str, above: Task, key: str, artifact: Artifact) -> Upstream:
    said = read_document(reader, topic, artifact.document_sha256)
    return Upstream(
        name=artifact.name,
        artifact_id=artifact.artifact_id,
        task_id=above.task_id,
        plan_task_id=key,
        version=artifact.version,
        sha256=artifact.sha256,
        bytes=artifact.bytes,
        media_type=media_type(said),
        uri=(said or {}).get("uri", ""),
        erased=said is None,
    )


def _depends_on(
    reader: Shelf, topic: str, world: World, task: Task, document: Document | None
) -> list[tuple[str, str]]:
    """Return what the task depends on, as (id in the plan, task id): from the run, or from the plan if it has ended;
    of a simple task from its document."""
    if not task.plan_task:
        return [("", task_id) for task_id in (document or {}).get("dependsOn", ())]
    run = world.runs.get(task.workflow_id)
    if run is not None:
        planned = run.plan.tasks[run.places[task.plan_task]]
        return [(run.plan.tasks[place].id, run.steps[place].task_id) for place in planned.depends_on]
    text = plan_text(reader, topic, task.content_sha256)
    named: list[str] = text.tasks.get(task.plan_task, {}).get("dependsOn", []) if text is not None else []
    return [(key, plan_task_id(task.workflow_id, key)) for key in named]


def said(reader: Shelf, topic: str, task: Task, attempt: int, claim_id: str) -> tuple[str, str]:
    """Return what people said before this claim: the note of the approver who rejected the last attempt, and the answer
    that lifted the task's last block. Empty if there is none."""
    if task.attempt == 1 and not task.answer_sha256:
        return "", ""
    note_sha256 = answer_sha256 = ""
    after, is_claimed = 0, False
    while not is_claimed and (records := reader.events(topic, task.task_id, after, _PAGE)):
        for record in records:
            after = record.sequence
            wire = decode(record.wire)
            kind, payload = wire["type"], wire["payload"]
            if kind == "gate.rejected":
                note_sha256 = payload.get("note_ref", {}).get("sha256", "")
            elif kind == "task.unblocked" and "answer_ref" in payload:
                answer_sha256 = payload["answer_ref"]["sha256"]
            elif kind == "task.claimed" and payload["claim_id"] == claim_id:
                is_claimed = True
                break
    return (
        _text(reader, topic, note_sha256 if attempt > 1 else "", "note"),
        _text(reader, topic, answer_sha256, "answer"),
    )


def _text(reader: Shelf, topic: str, sha256: str, name: str) -> str:
    return str((read_document(reader, topic, sha256) or {}).get(name, "")) if sha256 else ""
