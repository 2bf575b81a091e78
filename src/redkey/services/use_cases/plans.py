"""Plans as they come in: validated, and refused if they may not run."""

from __future__ import annotations

from functools import partial

from redkey.commands.decision import Refused
from redkey.errors import Finding
from redkey.plans.validate import validate
from redkey.plans.validation import Validation as Verdict
from redkey.services.caller import Caller
from redkey.shapes.definitions import Plan, PlanFinding, Validation


async def checked(caller: Caller, plan: object) -> Verdict:
    """Validate a plan; a large one beside the event loop."""
    judge = partial(validate, plan)
    return await (caller.beside(judge) if caller.is_large else caller.in_thread(judge))


def validation_view(found: Verdict) -> Validation:
    """Return a verdict in the form of replies."""
    return Validation(valid=found.valid, errors=_shown(found.errors), warnings=_shown(found.warnings))


def _shown(findings: tuple[Finding, ...]) -> tuple[PlanFinding, ...]:
    return tuple(PlanFinding(code=one.code, path=one.pointer, message=one.message) for one in findings)


def plan_invalid(found: Verdict, under: str = "") -> Refused:
    """Return the refusal of a plan that may not run, with the whole verdict. `under` is the plan's place in the
    request.
    """
    count = len(found.errors)
    detail = found.errors[0].message if count == 1 else f"The plan has {count} errors; `validation` lists them."
    findings = [Finding(one.code, under + one.pointer, one.message) for one in found.errors]
    return Refused(422, "plan_invalid", detail, findings=findings, validation=found.as_json())


def texts_of(plan: Plan) -> Plan:
    """Return a valid plan without its dependencies: these are ids of tasks, so they cannot hold a secret."""
    tasks = [{key: value for key, value in task.items() if key != "dependsOn"} for task in plan["tasks"]]
    return {**plan, "tasks": tasks}
