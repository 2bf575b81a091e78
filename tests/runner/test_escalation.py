"""Escalation: what an agent says is in its way, and whom its card sends that to. And what things cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redkey.errors import ConfigRefused, OutputRefused
from redkey.runner.cost import Usage, price_table, read_usage
from redkey.runner.escalation import escalate
from redkey.wire.step import StepOutput
from tests.harness.samples import QUINN


def _said(*notes: str) -> StepOutput:
    return StepOutput(True, "Which audience?", (), "escalate", notes)


@pytest.mark.parametrize(
    ("notes", "blocker", "messages"),
    [
        ((), "ambiguity", []),
        (("blocker_type: tool_failure",), "tool_failure", []),
        (("blocker_type: verification_fail",), "ambiguity", []),
        (("blocker_type: nonsense", "escalation_rule: 99"), "ambiguity", []),
        (("escalation_rule: -1",), "ambiguity", []),
        # Rule 1 goes to the analysts by a block, who hear of a gap anyway.
        (("escalation_rule: 1",), "spec_gap", []),
        (("escalation_rule: 1", "blocker_type: resource"), "resource", [("roles.ba", "task.blocked", 1)]),
        # Rule 2 is a question to Mindy.
        (("escalation_rule: 2",), "ambiguity", [("mindy", "question", 2)]),
    ],
)
def test_blocks_follow_what_is_said_and_messages_the_rule(notes: tuple, blocker: str, messages: list) -> None:
    raised = escalate(_said(*notes, "suggested_resolution: Name it."), QUINN, "task_1")
    assert (raised.blocker_type, raised.reason, raised.suggested_resolution) == (blocker, "Which audience?", "Name it.")
    assert [(one.to_agent, one.message_type, one.priority) for one in raised.mail] == messages
    assert all(one.action_required for one in raised.mail)


def test_a_dependency_waits_for_the_tasks_that_are_named() -> None:
    task = "task_" + "0" * 26
    raised = escalate(_said("blocker_type: dependency", f"depends_on: {task}, and more"), QUINN, "task_1")
    assert (raised.blocker_type, raised.depends_on) == ("dependency", (task,))
    assert escalate(_said("blocker_type: resource", f"depends_on: {task}"), QUINN, "task_1").depends_on == ()


def test_an_agent_without_a_card_has_no_rules() -> None:
    assert escalate(_said("escalation_rule: 1"), None, "task_1").mail == ()


def test_costs_are_exact_to_a_millionth() -> None:
    prices = price_table()
    used = [Usage(cost_usd=0.1), Usage(cost_usd=0.2), Usage(model="claude-sonnet-4-6-20260101", input_tokens=1)]
    assert prices.cost(used) == 0.300003
    # A model without a price costs nothing that is known; its tokens count all the same.
    assert prices.cost([*used, Usage(model="nobody-1", input_tokens=5)]) == 0.300003
    assert prices.unpriced([*used, Usage(model="nobody-1", input_tokens=5)]) == {"nobody-1"}


def test_prices_of_ones_own_go_before_those_that_ship(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"models": {"ours": {"input": 2, "output": 4, "cache_read": 1}}}))
    used = Usage(model="ours", input_tokens=500_000, output_tokens=250_000, cache_read_input_tokens=1_000_000)
    assert price_table(path).cost([used]) == 3.0
    assert price_table(path).knows("claude-haiku-4-5")


@pytest.mark.parametrize("text", ["", "{}", '{"models": {"x": {"input": -1, "output": 1}}}', '{"models": {"x": {}}}'])
def test_a_price_table_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "prices.json").write_text(text)
    with pytest.raises(ConfigRefused):
        price_table(tmp_path / "prices.json")


def test_usage_is_one_object_or_a_line_for_each() -> None:
    assert read_usage(b'{\n "cost_usd": 1\n}') == [Usage(cost_usd=1.0)]
    assert read_usage(b'{"cost_usd": 1}\n\n{"model": "m", "input_tokens": 2}\n')[1].input_tokens == 2
    for wrong in (b"[]", b'{"cost_usd": "1"}', b'{"input_tokens": -1}', b"{}\n" * 2000, b"x"):
        with pytest.raises(OutputRefused):
            read_usage(wrong)
