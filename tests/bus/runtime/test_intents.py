"""Relay intents: JSON only, read as leniently as existing models need."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from redkey.bus.runtime.events import Peer
from redkey.bus.runtime.intents import InvalidIntent, LocalAnswer, MessageAgent, TaskDone, read_intent, wants_plan
from redkey.bus.runtime.targets import read_mentions, resolve


def said(**value: Any) -> str:
    return orjson.dumps(value).decode()


@pytest.mark.parametrize(
    ("output", "intent"),
    [
        (
            said(intent="message_agent", dst="worker", payload={"input": {"text": "go"}}, plan=["a", "b"]),
            MessageAgent(("worker",), "go", ("a", "b")),
        ),
        (said(intent="message_agent", dst=["a", "b", "a"], text="go"), MessageAgent(("a", "b"), "go")),
        (said(intent="message_agent", dst="a", payload={"text": "x", "input": "y"}), MessageAgent(("a",), "x")),
        (said(intent="message_agent", dst="a", payload={"input": "y"}), MessageAgent(("a",), "y")),
        (said(intent="message_agent", dst="a", input={"text": "y"}), MessageAgent(("a",), "y")),
        (
            said(intent="message_agent", dst="a", text="x", payload={"steps": [{"step": "1"}, {"text": "2"}, ""]}),
            MessageAgent(("a",), "x", ("1", "2")),
        ),
        (
            said(intent="message_agent", dst="a", text="x", items="only", explanation="why"),
            MessageAgent(("a",), "x", ("only",), "why"),
        ),
        ('```json\n{"intent":"task_done","summary":"ok"}\n```', TaskDone("ok")),
        ('```\n{"intent":"task_done"}\n```', TaskDone(None)),
        (said(intent="task_done", text="all"), TaskDone("all")),
        ("just words", LocalAnswer("just words")),
        ('here it is: {"intent":"task_done"}', LocalAnswer('here it is: {"intent":"task_done"}')),
        ("{broken}", LocalAnswer("{broken}")),
        (said(intent="dance"), LocalAnswer(said(intent="dance"))),
        (said(hello=1), LocalAnswer(said(hello=1))),
        ("", LocalAnswer("")),
    ],
)
def test_model_output_is_read_as_an_intent(output: str, intent: Any) -> None:
    assert read_intent(output) == intent


@pytest.mark.parametrize(
    "value",
    [
        {"intent": "message_agent", "text": "x"},
        {"intent": "message_agent", "dst": "", "text": "x"},
        {"intent": "message_agent", "dst": [], "text": "x"},
        {"intent": "message_agent", "dst": "a"},
        {"intent": "message_agent", "dst": "a", "payload": {"input": {"text": "  "}}},
    ],
)
def test_an_intent_with_a_missing_field_is_invalid(value: dict[str, Any]) -> None:
    assert isinstance(read_intent(said(**value)), InvalidIntent)


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        ("#bob do it", False),
        ("#bob do this\n\nand that", True),
        ("#bob try until it works", True),
        ("shift the thenar", False),
    ],
)
def test_a_plan_is_wanted_for_tasks_with_several_steps(task: str, wanted: bool) -> None:
    assert wants_plan(task) is wanted


PEERS = [Peer("a1", "Ann"), Peer("b1", "Bob Smith"), Peer("c1"), Peer("a2", "ann"), Peer("me", "Me")]


@pytest.mark.parametrize(
    ("text", "targets", "errors"),
    [
        ("#Ann please", ["a1"], []),
        ("#ann and #c1", ["a2", "c1"], []),
        ("#C1 in another case", ["c1"], []),
        ("**#Ann** and `#c1`.", ["a1", "c1"], []),
        ("#Ann #Ann", ["a1"], []),
        ("ask #b1, #Bob first", ["b1"], ["#Bob names no agent here; write ##Bob for the plain word"]),
        ("#ANN?", [], ["#ANN matches 2 agents: #a1, #a2"]),
        ("#me # Ann ##24", [], ["#me is you"]),
        ("fix #24", [], ["#24 names no agent here; write ##24 for the plain word"]),
    ],
)
def test_mentions(text: str, targets: list[str], errors: list[str]) -> None:
    found = read_mentions(text, PEERS, "me")
    assert (list(found.targets), list(found.errors)) == (targets, errors)


@pytest.mark.parametrize(
    ("names", "allowed", "found"),
    [
        (["#a1"], {"a1", "a2"}, ["a1"]),
        (["ANN"], {"a1", "a2"}, ["a1", "a2"]),
        (["bob smith", "b1"], {"b1"}, ["b1"]),
        (["c1"], {"a1"}, []),
        (["nobody"], {"a1"}, []),
    ],
)
def test_targets_are_found_by_id_or_name_within_the_fixed_set(
    names: list[str], allowed: set[str], found: list[str]
) -> None:
    assert resolve(names, PEERS, frozenset(allowed)) == found
