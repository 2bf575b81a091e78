"""The agent-protocol envelopes of a step (seed 003): the input made from a task, the output read from what came back.

Where in a workflow the agent stands: the feature is what the input says, else the run; the workflow is the plan's
name, else the queue; the action is what the input says, else the task's id in the plan; the iteration counts how
often the work was tried, by attempts of the task and by tries within one. Notes of the tasks before travel without
saying whose they are.
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

# What an input may say for the envelope itself; the rest of it are parameters.
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
    """The input of one try at a task; WireRefused when the task's own input makes none.

    `paths` are those of upstream artifacts, `said` what this try must know beyond the notes of the tasks before.
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
    """What the run and then the task were given; what is no object is one parameter."""
    merged: dict[str, Any] = {}
    for given in (task.workflow_input, task.input):
        if isinstance(given, dict):
            merged |= given
        elif given is not None:
            merged["input"] = given
    return merged


def _prior(task: Assignment, said: Sequence[str]) -> list[str]:
    """The notes for this try: what is newest last, and kept when there is not room for all."""
    notes = [note for text in task.prior_context for note in read_notes(text)]
    if task.note:
        notes.append(f"An approver sent the attempt before this one back: {task.note}")
    return [_short(note) for note in [*notes, *said] if note.strip()][-_NOTES:]


def _short(note: str) -> str:
    return note if len(note) <= _NOTE_CHARACTERS else note[: _NOTE_CHARACTERS - 1] + "…"


def slug(text: str) -> str:
    """A name for machines from one for people; empty when nothing is left."""
    return _NO_SLUG.sub("-", text.lower()).strip("-_")[:64]


def write_notes(notes: Iterable[str]) -> str:
    """Notes as one text: a line each, further lines of a note indented."""
    return "\n".join("\n  ".join(note.splitlines()) for note in notes)


def read_notes(text: str) -> list[str]:
    """The notes in a text, whoever wrote it: a line each, indented lines go on with the one before."""
    notes: list[str] = []
    for line in text.splitlines():
        if line.startswith("  ") and notes:
            notes[-1] += "\n" + line[2:]
        elif line.strip():
            notes.append(line)
    return notes


def input_bytes(given: StepInput) -> bytes:
    """An input as an agent gets it."""
    return msgspec.json.encode(given)


def read_output(data: bytes) -> StepOutput:
    """The output envelope in what an agent said: all of it, its last fenced block, or the last object in it.

    StepFailed when there is none, with all that is wrong with what comes nearest.
    """
    problem = "nothing was handed back"
    for candidate in _candidates(data):
        try:
            value = decode(candidate, size_limit=SIZE_LIMIT)
        except JsonRefused as refused:
            if not problem.startswith("/"):
                end = candidate[-_SHOWN_BYTES:].decode("utf-8", "replace")
                problem = f"{refused.message}, in the text that ends with {end!r}"
            continue
        if kind_of(value) != "output":
            problem = "what was handed back is no output envelope (success, summary, artifacts, recommendation)"
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
    # An object that begins a line, the last one first: lines of a log may stand before it and after it.
    starts = [found.start() for found in _OBJECT.finditer(text)][-_OBJECTS:]
    for start in reversed(starts):
        try:
            end = _DECODER.raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            continue
        yield text[start:end].encode()
