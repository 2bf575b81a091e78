"""Each rule of the linter can be broken, and documents exactly at its limit pass."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.errors import WireRefused
from redkey.wire import files
from redkey.wire.card import read_card, role_name
from redkey.wire.legacy import read_wire_1_0
from redkey.wire.lint import RULES, lint_card, lint_wire, read_registry


def _brief(**payload: Any) -> dict[str, Any]:
    value = files.load("fixtures/agent-wire/v1.0/brief.valid.json")
    return {**value, "payload": {**value["payload"], **payload}}


def _complete(**payload: Any) -> dict[str, Any]:
    value = files.load("fixtures/agent-wire/v1.0/complete.valid.json")
    return {**value, "payload": {**value["payload"], **payload}}


def _card(**fields: Any) -> dict[str, Any]:
    value = files.load("fixtures/cards/card.valid.json")
    for name, item in fields.items():
        value[name] = {**value[name], **item} if isinstance(item, dict) else item
    return value


def _rule(route_to: str) -> dict[str, str]:
    return {"trigger": "Something is unclear", "route_to": route_to, "via": "inbox"}


REGISTRY = read_registry(files.load("fixtures/cards/registry.json"))


def _codes(value: dict[str, Any]) -> set[str]:
    if "wire" in value:
        return {finding.code for finding in lint_wire(read_wire_1_0(value))}
    return {finding.code for finding in lint_card(read_card(value), REGISTRY)}


# code -> (a document that breaks the rule, its neighbour that does not)
PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "goal_missing": (_brief(goal=" . "), _brief(goal="It works")),
    "goal_sentences": (
        _brief(goal="It works. It is fast."),
        _brief(goal="It works, e.g. Redis is up, and v1.2 is fast."),
    ),
    "goal_imperative": (_brief(goal="Build the page."), _brief(goal="The page is built.")),
    "context_words": (_brief(context="word " * 201), _brief(context="word " * 200)),
    "criteria_missing": (_brief(acceptance_criteria=[]), _brief(acceptance_criteria=["The tests pass"])),
    "criterion_sentences": (
        _brief(acceptance_criteria=["It passes. It must, because we ship it."]),
        _brief(acceptance_criteria=["It passes."]),
    ),
    "summary_words": (_complete(summary="word " * 151), _complete(summary="word " * 150)),
    "scope_sentences": (_card(scope="I write. I read."), _card(scope="I write, and I read what I wrote.")),
    "constraint_form": (
        _card(constraints=["I never lie", "I never tire", "You should never write code"]),
        _card(constraints=["I never lie", "I never tire", "I never write code"]),
    ),
    "constraints_few": (_card(constraints=["I never a", "I never b"]), _card(constraints=["I never a"] * 3)),
    "escalation_missing": (_card(escalation_rules=[]), _card(escalation_rules=[_rule("human")])),
    "style_sentences": (_card(working_style="A b. C d. E f. G h."), _card(working_style="A b. C d. E f.")),
    "voice_sentences": (
        _card(voice={"description": "Short. Plain. Dry."}),
        _card(voice={"description": "Short. Plain."}),
    ),
    "voice_examples": (
        _card(voice={"example": ["Done.", "Not done."]}),
        _card(voice={"example": ["Done. Tests pass. Branch: feature/a."]}),
    ),
    "department_unusual": (_card(identity={"department": "finance"}), _card(identity={"department": "sales"})),
    "reports_to_unknown": (_card(identity={"reports_to": "nobody"}), _card(identity={"reports_to": "vikram"})),
    "route_unknown": (_card(escalation_rules=[_rule("nobody")]), _card(escalation_rules=[_rule("mindy")])),
    "output_type_unknown": (_card(output_types=["poem"]), _card(output_types=["code_commit"])),
}


def test_every_code_is_tried() -> None:
    assert PAIRS.keys() == RULES.keys()


@pytest.mark.parametrize("code", RULES)
def test_a_rule_can_be_broken_and_its_neighbour_breaks_nothing(code: str) -> None:
    wrong, right = PAIRS[code]
    assert _codes(wrong) == {code}
    assert _codes(right) == set()


@pytest.mark.parametrize("code", RULES)
def test_a_finding_has_the_severity_of_its_rule_and_a_whole_sentence(code: str) -> None:
    wrong = PAIRS[code][0]
    findings = lint_wire(read_wire_1_0(wrong)) if "wire" in wrong else lint_card(read_card(wrong), REGISTRY)
    assert findings[0].severity == RULES[code].severity
    assert "{" not in findings[0].message


def test_the_severities_are_those_of_the_design() -> None:
    warnings = {code for code, rule in RULES.items() if rule.severity == "warning"}
    assert {"goal_imperative", "constraints_few", "department_unusual"} <= warnings
    assert not {"goal_missing", "goal_sentences", "constraint_form", "voice_examples", "route_unknown"} & warnings


@pytest.mark.parametrize(
    "example", ["First example.\n\nSecond example.", "- Done.\n- Not done.", "1. Done.\n2. Not done."]
)
def test_several_examples_in_one_string_are_noticed(example: str) -> None:
    assert _codes(_card(voice={"example": example})) == {"voice_examples"}


@pytest.mark.parametrize("example", ["One example\nover two lines.", "- Done.", "Use a-b - or c."])
def test_one_example_of_several_lines_is_one(example: str) -> None:
    assert _codes(_card(voice={"example": example})) == set()


@pytest.mark.parametrize(
    "constraint", ["i never lie", "I Never lie", "I never", "I never ", "Never lie", " I never lie"]
)
def test_a_constraint_has_exactly_one_form(constraint: str) -> None:
    assert _codes(_card(constraints=[constraint, "I never tire", "I never lie"])) == {"constraint_form"}


@pytest.mark.parametrize(
    "route", ["ba", "role_ba", "roles.ba", "pm", "developer", "exec", "human", "roles.exec", "atlas"]
)
def test_a_role_may_be_spelled_in_three_ways_and_exec_and_human_always_exist(route: str) -> None:
    assert _codes(_card(escalation_rules=[_rule(route)])) == set()


def test_the_three_spellings_of_a_role_are_one_name() -> None:
    assert {role_name("ba"), role_name("role_ba"), role_name("roles.ba")} == {"ba"}


def test_an_unknown_name_is_answered_with_the_nearest_known_one() -> None:
    findings = lint_card(read_card(_card(escalation_rules=[_rule("mindi")])), REGISTRY)
    assert "did you mean 'mindy'?" in findings[0].message


def test_without_a_registry_names_are_not_looked_up() -> None:
    assert lint_card(read_card(_card(escalation_rules=[_rule("nobody")], output_types=["poem"]))) == []


def test_the_reference_card_breaks_no_rule() -> None:
    assert lint_card(read_card(files.load("definitions/cards/quinn.json")), REGISTRY) == []


def test_the_brief_of_the_seed_breaks_no_rule() -> None:
    assert lint_wire(read_wire_1_0(files.load("fixtures/agent-wire/v1.0/brief.valid-seed-example.json"))) == []


def test_a_registry_of_another_shape_is_refused() -> None:
    with pytest.raises(WireRefused) as refused:
        read_registry({"agents": [], "roles": "all"})
    assert {finding.pointer for finding in refused.value.findings()} == {"/output_types", "/roles"}
