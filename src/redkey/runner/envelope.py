"""The agent-protocol envelopes of a step (seed 003): build the input from a task, read the output from an answer.

`feature` comes from the task's input, else it is the run. `workflow` is the plan's name, else the queue. `action` comes
from the input, else it is the task's id in the plan. `iteration` counts all tries over all attempts. Notes of earlier
tasks are passed on without their author.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from redkey.client import Assignment
from redkey.errors import JsonRefused, StepFailed, WireRefused
from redkey.wire.decode import decode
from redkey.wire.step import SIZE_LIMIT, StepInput, StepOutput, kind_of, read_step_input, read_step_output

# Fields of a task's input that set fields of the envelope; all others are parameters.
_RESERVED = ("feature_id", "action", "paths", "params")
_NOTES, _NOTE_CHARACTERS = 64, 1000
_NO_SLUG = re.compile(r"[^a-z0-9_-]+")
_FENCED = re.compile(r"^```(?:json)?[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)

_OBJECT = re.compile(r"^\{", re.MULTILINE)
_OBJECTS = 50
_SHOWN_BYTES = 60
_DECODER = json.JSONDecoder()

Paths = Mapping[str, str | tuple[str, ...]]


def step_input(
    task: Assignment, *, workflow: str, paths: Paths | None = None, tries: int = 1, said: Sequence[str] = ()
) -> StepInput:
    """Build the input of one try; WireRefused if the task's own input does not fit.

    `paths` are those of upstream artifacts, `said` are notes for this try beside those of earlier tasks.
    """
    given = _given(task)
    params, named = given.get("params"), given.get("paths", {})
    rest = {name: value for name, value in given.items() if name not in _RESERVED}
    value = {
        "context": {
            "feature_id": given.get("feature_id") or task.workflow_id or None,
            "workflow": slug(workflow) or slug(task.queue_id.removeprefix("queue_")) or "queue",
            "iteration": min(1000, task.attempt + tries - 1),
        },
        "paths": {**named, **(paths or {})} if isinstance(named, dict) else named,
        "task": {
            "action": given.get("action") or slug(task.plan_task_id) or "execute",
            "params": {**rest, **params} if isinstance(params, dict) else rest,
        },
        "prior_context": _prior(task, said),
    }
    return read_step_input(value)


def _given(task: Assignment) -> dict[str, Any]:
    """Merge the inputs of run and task; an input that is not an object becomes one parameter."""
    merged: dict[str, Any] = {}
    for given in (task.workflow_input, task.input):
        if isinstance(given, dict):
            merged |= given
        elif given is not None:
            merged["input"] = given
    return merged


def _prior(task: Assignment, said: Sequence[str]) -> list[str]:
    """Return the notes for this try, newest last; the oldest are dropped if there are too many."""
    notes = [note for text in task.prior_context for note in read_notes(text)]
    if task.note:
        notes.append(f"An approver sent the attempt before this one back: {task.note}")
    return [_short(note) for note in [*notes, *said] if note.strip()][-_NOTES:]


def _short(note: str) -> str:
    return note if len(note) <= _NOTE_CHARACTERS else note[: _NOTE_CHARACTERS - 1] + "…"


def slug(text: str) -> str:
    """Turn a title into a slug; empty if no character is usable."""
    return _NO_SLUG.sub("-", text.lower()).strip("-_")[:64]


def write_notes(notes: Iterable[str]) -> str:
    """Join notes into one text: one line each, further lines of a note indented."""
    return "\n".join("\n  ".join(note.splitlines()) for note in notes)


def read_notes(text: str) -> list[str]:
    """Split a text into notes: one per line, indented lines continue the note before."""
    notes: list[str] = []
    for line in text.splitlines():
        if line.startswith("  ") and notes:
            notes[-1] += "\n" + line[2:]
        elif line.strip():
            notes.append(line)
    return notes


def input_bytes(given: StepInput) -> bytes:
    """Encode an input for the agent."""
    return msgspec.json.encode(given)


def read_output(data: bytes) -> StepOutput:
    """Find the output envelope in an answer: the whole text, its last fenced block, or the last object in it.

    StepFailed if there is none; it lists what is wrong with the best candidate.
    """
    problem = "the answer is empty"
    for candidate in _candidates(data):
        try:
            value = decode(candidate, size_limit=SIZE_LIMIT)
        except JsonRefused as refused:
            if not problem.startswith("/"):
                end = candidate[-_SHOWN_BYTES:].decode("utf-8", "replace")
                problem = f"{refused.message}, in the text that ends with {end!r}"
            continue
        if kind_of(value) != "output":
            problem = "the answer is not an output envelope (success, summary, artifacts, recommendation)"
            continue
        try:
            return read_step_output(value)
        except WireRefused as refused:
            problem = "; ".join(f"{one.pointer or '/'}: {one.message}" for one in refused.findings()[:5])
    raise StepFailed(f"no valid output envelope: {problem[:1000]}", code="envelope_invalid")


def _candidates(data: bytes) -> Iterable[bytes]:
    whole = data.strip()
    if not whole:
        return
    yield whole
    text = whole.decode("utf-8", "replace")
    blocks = _FENCED.findall(text)
    if blocks:
        yield blocks[-1].strip().encode()
    # Try objects that begin a line, the last one first; log lines may come before and after them.
    starts = [found.start() for found in _OBJECT.finditer(text)][-_OBJECTS:]
    for start in reversed(starts):
        try:
            end = _DECODER.raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            continue
        yield text[start:end].encode()
