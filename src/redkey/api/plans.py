"""What the endpoints of plans share: the verdict on a plan as it is shown, and the refusal of one that may not run."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from redkey.api.call import Call
from redkey.errors import Finding
from redkey.http.problems import Declined
from redkey.plans.validate import validate
from redkey.plans.validation import Validation


class FindingView(msgspec.Struct, frozen=True):
    """One thing that stands against a plan, or could be better about it: where, and what to do."""

    code: str
    path: str
    message: str


class ValidationView(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a plan may run; errors stand against it, warnings are advice."""

    valid: bool
    errors: list[FindingView]
    warnings: list[FindingView]


def validation_view(found: Validation) -> ValidationView:
    return ValidationView(found.valid, _shown(found.errors), _shown(found.warnings))


def _shown(findings: tuple[Finding, ...]) -> list[FindingView]:
    return [FindingView(one.code, one.pointer, one.message) for one in findings]


async def checked(call: Call, plan: Any) -> Validation:
    """The verdict on a plan; a large one is judged beside the event loop."""
    judge = partial(validate, plan)
    return await (call.beside(judge) if call.is_large else call.in_thread(judge))


def texts_of(plan: dict[str, Any]) -> dict[str, Any]:
    """A valid plan without its dependencies: they are ids of tasks and nothing that anybody wrote beside them."""
    tasks = [{key: value for key, value in task.items() if key != "dependsOn"} for task in plan["tasks"]]
    return {**plan, "tasks": tasks}


class PlanDeclined(Declined):
    """A plan that may not run: the problem carries the whole verdict."""

    def __init__(self, found: Validation, under: str) -> None:
        count = len(found.errors)
        detail = found.errors[0].message if count == 1 else f"{count} things stand against the plan; see validation."
        findings = [Finding(one.code, under + one.pointer, one.message) for one in found.errors]
        super().__init__(422, "plan_invalid", detail, findings=findings)
        self.members = {"validation": found.as_json()}


EXAMPLE: dict[str, Any] = {
    "version": "1.0",
    "name": "podcast-production",
    "roles": {
        "producer": {"description": "Owns intake, structure, and final packaging."},
        "researcher": {"description": "Finds and summarizes relevant background."},
    },
    "tasks": [
        {
            "id": "guest_intake",
            "title": "Summarize guest and topic brief",
            "role": "producer",
            "dependsOn": [],
            "outputs": ["guest_brief"],
            "completionCriteria": ["Guest background summarized", "Target episode angle identified"],
        },
        {
            "id": "guest_research",
            "title": "Research guest and market context",
            "role": "researcher",
            "dependsOn": ["guest_intake"],
            "outputs": ["research_packet"],
            "completionCriteria": ["At least five useful facts found", "Sources included"],
        },
    ],
    "policies": {"maxParallelTasks": 5, "retry": {"maxAttempts": 2, "onFailure": "reopen"}},
}
