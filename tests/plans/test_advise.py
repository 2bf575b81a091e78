"""Each warning has a threshold; plans just below and just above it are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from redkey.plans.advise import CRITERIA, DEPENDENCIES, OUTPUTS, SERIAL_TASKS, TITLE_WORDS, acts
from redkey.plans.validate import validate
from tests.harness.runs import plan_of, step


def one(**more: Any) -> dict[str, Any]:
    return plan_of(step("a", **{"outputs": ["text"], **more}))


def codes(plan: dict[str, Any]) -> list[str]:
    found = validate(plan)
    assert found.valid, found.errors
    assert {finding.severity for finding in found.warnings} <= {"warning"}
    return [finding.code for finding in found.warnings]


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


@pytest.mark.parametrize(
    ("fine", "broad"),
    [
        ({"title": " ".join(["word"] * TITLE_WORDS)}, {"title": " ".join(["word"] * (TITLE_WORDS + 1))}),
        ({"title": "Collect and rank links"}, {"title": "Collect, rank and publish links"}),
        ({"title": "Write the part on pricing"}, {"title": "Write the whole book"}),
        ({"title": "Summarize the project brief"}, {"title": "Do the project"}),
        (
            {"completionCriteria": numbered("At least 3 sources ", CRITERIA)},
            {"completionCriteria": numbered("At least 3 sources ", CRITERIA + 1)},
        ),
        ({"outputs": numbered("part", OUTPUTS)}, {"outputs": numbered("part", OUTPUTS + 1)}),
    ],
    ids=["words", "acts", "whole", "project", "criteria", "outputs"],
)
def test_a_task_is_too_broad(fine: dict[str, Any], broad: dict[str, Any]) -> None:
    assert "task_too_broad" not in codes(one(**fine))
    assert codes(one(**broad)) == ["task_too_broad"]


def test_a_task_has_no_concrete_output() -> None:
    assert codes(one()) == []
    assert codes(one(outputs=[])) == ["no_output"]


def test_a_task_depends_on_too_many_others() -> None:
    def plan(count: int) -> dict[str, Any]:
        keys = numbered("t", count)
        above = [step(key, outputs=[f"o-{key}"]) for key in keys]
        return plan_of(*above, step("last", *keys, outputs=["all"]))

    assert codes(plan(DEPENDENCIES)) == []
    assert codes(plan(DEPENDENCIES + 1)) == ["too_many_dependencies"]


@pytest.mark.parametrize(
    ("clear", "unclear"),
    [
        ("Sources included", "Sources"),
        ("The reader knows the price", "The text is good"),
        ("Answers in under 200 ms, better than today's 300", "Answers better than today"),
        ("Every link resolves", "Links work if possible"),
        ("Each term has a definition", "Terms are defined as needed"),
        ("Three examples are given", "Examples, notes, etc."),
        ("The host has read it", "Looks right"),
        ("Host voice is preserved", "Appropriate tone of voice"),
        ("The high road is described", "High-quality prose throughout"),
    ],
)
def test_a_completion_criterion_is_unclear(clear: str, unclear: str) -> None:
    assert codes(one(completionCriteria=[clear])) == []
    assert codes(one(completionCriteria=[clear, unclear])) == ["criterion_unclear"]


def test_a_plan_has_too_much_serial_work() -> None:
    def chain(length: int, *more: dict[str, Any]) -> dict[str, Any]:
        tasks = [step(f"t{n}", *([f"t{n - 1}"] if n else []), outputs=[f"o{n}"]) for n in range(length)]
        return plan_of(*tasks, *more)

    assert codes(chain(SERIAL_TASKS - 1)) == []
    assert codes(chain(SERIAL_TASKS)) == ["plan_too_serial"]
    # Six tasks on four levels are one and a half a level.
    beside = [step(f"b{n}", outputs=[f"p{n}"]) for n in range(2)]
    assert codes(chain(4, beside[0])) == ["plan_too_serial"]
    assert codes(chain(4, *beside)) == []


@pytest.mark.parametrize("name", ["agent", "Worker", "helper_2", "ai-agent", "x", "team-1", "role_bot", "123"])
def test_a_role_name_is_vague(name: str) -> None:
    plan = plan_of(step("a", role=name, outputs=["text"]))
    assert codes(plan) == ["role_name_vague"]


@pytest.mark.parametrize("name", ["researcher", "pm", "qa", "lead-agent-builder", "project_manager", "ba"])
def test_a_role_name_tells_what_its_agents_do(name: str) -> None:
    assert codes(plan_of(step("a", role=name, outputs=["text"]))) == []


@pytest.mark.parametrize(
    "title", ["Write and review the script", "Draft, then proofread, the page", "Build & verify it"]
)
def test_one_task_produces_and_reviews(title: str) -> None:
    assert codes(one(title=title)) == ["produces_and_reviews"]


@pytest.mark.parametrize("title", ["Review podcast draft", "Write a review of the film", "Prepare the audit report"])
def test_a_thing_that_is_named_like_an_act_is_not_one(title: str) -> None:
    assert codes(one(title=title)) == []


def test_a_role_reviews_what_it_has_made_itself() -> None:
    def plan(reviewer: str, made: list[str]) -> dict[str, Any]:
        draft = step("draft", outputs=made or ["draft"])
        return plan_of(draft, step("check", "draft", role=reviewer, title="Review the draft", outputs=["notes"]))

    assert codes(plan("editor", ["script"])) == []
    assert codes(plan("writer", ["script"])) == ["produces_and_reviews"]
    same = plan("role_writer", ["script"])
    del same["roles"]["role_writer"]
    assert codes(same) == ["produces_and_reviews"]


def test_a_gate_without_another_attempt_ends_the_task() -> None:
    twice = {"maxAttempts": 2, "onFailure": "fail"}
    assert codes(one(approvalGate=True, retry=twice)) == []
    assert codes(one(approvalGate=True)) == ["gate_without_retry"]
    assert codes(one(approvalGate=False)) == []


def test_a_role_that_nobody_uses_is_told() -> None:
    plan = one()
    plan["roles"]["painter"] = {"description": "Paints."}
    assert codes(plan) == ["role_unused"]


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("Summarize guest and topic brief", ["summarize"]),
        ("Research guest and market context", ["research"]),
        ("Collect, rank and publish", ["collect", "rank", "publish"]),
        ("The plan to write and test", ["write", "test"]),
        ("", []),
    ],
)
def test_the_acts_of_a_title(title: str, found: list[str]) -> None:
    assert acts(title) == found
