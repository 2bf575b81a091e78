"""Relay intents: the output of the model of a conversation's owner, read as leniently as existing clients do.

Output must be JSON only, possibly in a fence. Anything else, or an unknown intent, is an answer for the local user and
ends the relay. An intent with a missing field is invalid, and the model is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from redkey.bus.runtime.weave1_fields import given
from redkey.errors import JsonRefused
from redkey.wire.decode import decode

_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(?P<inside>.*?)\n?```", re.DOTALL)
# Words of tasks with several or conditional steps, which need a plan.
_PLAN_WORDS = frozenset({"if", "then", "until", "again", "repeat", "retry", "loop", "unless"})


class MessageAgent(msgspec.Struct, frozen=True):
    """Send a message to one or several agents, named by id or name."""

    targets: tuple[str, ...]
    text: str
    plan: tuple[str, ...] = ()
    note: str | None = None


class TaskDone(msgspec.Struct, frozen=True):
    """End the relay."""

    summary: str | None = None


class LocalAnswer(msgspec.Struct, frozen=True):
    """No intent: an answer for the local user."""

    text: str


class InvalidIntent(msgspec.Struct, frozen=True):
    """An intent with a missing field, and which one."""

    reason: str


Intent = MessageAgent | TaskDone | LocalAnswer | InvalidIntent


def read_intent(output: str) -> Intent:
    """Read the output of a model."""
    text = output.strip()
    fenced = _FENCE.fullmatch(text)
    inside = fenced["inside"].strip() if fenced is not None else text
    if not (inside.startswith("{") and inside.endswith("}")):
        return LocalAnswer(text)
    try:
        value = decode(inside.encode("utf-8", "replace"))
    except JsonRefused:
        return LocalAnswer(text)
    intent = value.get("intent")
    if intent == "task_done":
        return TaskDone(given(value.get("summary")) or next(_texts(value), None))
    return _message(value) if intent == "message_agent" else LocalAnswer(text)


def wants_plan(task: str) -> bool:
    """Whether a task needs a plan: it has several lines or a conditional word."""
    lines = [line for line in task.splitlines() if line.strip()]
    return len(lines) > 1 or not _PLAN_WORDS.isdisjoint(re.findall(r"[a-z]+", task.lower()))


def _message(value: Mapping[str, Any]) -> Intent:
    named = value.get("dst")
    listed = named if isinstance(named, list) else [named]
    targets = tuple(dict.fromkeys(name for entry in listed if (name := given(entry)) is not None))
    text = next(_texts(value), None)
    if not targets:
        return InvalidIntent("message_agent needs dst: the id or name of an agent, or a list of them")
    if text is None:
        return InvalidIntent("message_agent needs payload.input.text: the text to send")
    plan, note = _plan(value)
    return MessageAgent(targets, text, plan, note)


def _texts(value: Mapping[str, Any]) -> Iterator[str]:
    """Find texts where models put them: in the payload first, then at the top level."""
    for part in _parts(value):
        inner = part.get("input")
        candidates = (part.get("text"), inner, inner.get("text") if isinstance(inner, dict) else None)
        yield from (text for candidate in candidates if (text := given(candidate)) is not None)


def _plan(value: Mapping[str, Any]) -> tuple[tuple[str, ...], str | None]:
    for part in _parts(value):
        for name in ("plan", "steps", "items"):
            steps = _steps(part.get(name))
            if steps:
                return steps, given(part.get("note")) or given(part.get("explanation"))
    return (), None


def _steps(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict):
        return _steps(next((value[name] for name in ("plan", "steps", "items") if name in value), None))
    listed = value if isinstance(value, list) else [value]
    texts = ((entry.get("step") or entry.get("text")) if isinstance(entry, dict) else entry for entry in listed)
    return tuple(step for text in texts if (step := given(text)) is not None)


def _parts(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    payload = value.get("payload")
    if isinstance(payload, dict):
        yield payload
    yield value
