"""Relay intents: what the model of a conversation's owner says it wants, read with the tolerances clients know.

Output is JSON and nothing else, perhaps in a fence. What is not JSON, or names no intent that is known, is an answer
for the local user and ends the relay. An intent that lacks what it needs is invalid: the model is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from redkey.bus.runtime.newer import given
from redkey.errors import JsonRefused
from redkey.wire.decode import decode

_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(?P<inside>.*?)\n?```", re.DOTALL)
# A task that asks for several things, or for one until something holds, is worth a plan.
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
    """No intent: words for the local user."""

    text: str


class Invalid(msgspec.Struct, frozen=True):
    """An intent that cannot be followed, and why."""

    reason: str


Intent = MessageAgent | TaskDone | LocalAnswer | Invalid


def read_intent(output: str) -> Intent:
    """What a model's output means."""
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
    """True when a task is worth a plan: several lines, or a word that makes it conditional."""
    lines = [line for line in task.splitlines() if line.strip()]
    return len(lines) > 1 or not _PLAN_WORDS.isdisjoint(re.findall(r"[a-z]+", task.lower()))


def _message(value: Mapping[str, Any]) -> Intent:
    named = value.get("dst")
    listed = named if isinstance(named, list) else [named]
    targets = tuple(dict.fromkeys(name for one in listed if (name := given(one)) is not None))
    text = next(_texts(value), None)
    if not targets:
        return Invalid("message_agent needs dst: the id or name of an agent, or a list of them")
    if text is None:
        return Invalid("message_agent needs payload.input.text: what to say")
    plan, note = _plan(value)
    return MessageAgent(targets, text, plan, note)


def _texts(value: Mapping[str, Any]) -> Iterator[str]:
    """Text where models put it: first in the payload, then at the top."""
    for part in _parts(value):
        inner = part.get("input")
        candidates = (part.get("text"), inner, inner.get("text") if isinstance(inner, dict) else None)
        yield from (text for one in candidates if (text := given(one)) is not None)


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
    found = ((one.get("step") or one.get("text")) if isinstance(one, dict) else one for one in listed)
    return tuple(step for one in found if (step := given(one)) is not None)


def _parts(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    payload = value.get("payload")
    if isinstance(payload, dict):
        yield payload
    yield value
