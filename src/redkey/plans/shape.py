"""The shape of a plan: errors of its JSON schema, under the codes of the checks that authors of plans know.

The schema is the only copy of the rules. A finding listed here gets a code and a sentence of its own; any other keeps
the code and sentence of the schema.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from redkey.errors import Finding
from redkey.wire.schema import compile_schema

SCHEMA = "schemas/plan/v1.0/plan.schema.json"
TASKS_LIMIT = 10_000
TOO_MANY_TASKS = f"The plan has more than {TASKS_LIMIT:,} tasks; split it into several plans."

_INDEX = re.compile(r"(?<=/)[0-9]+(?=/|$)")
_ROLE = re.compile(r"^/roles/[^/]+")
_REQUIRED = "schema_required"
_SLUG = "1 to 32 of a-z, 0-9, dot, dash and underscore, beginning with a letter or digit"

# Pointer (indexes and role names as *) -> code and sentence for a missing field.
_MISSING: Mapping[str, tuple[str, str]] = {
    "/version": ("version_missing", 'Add "version": "1.0" to the plan.'),
    "/name": ("name_missing", "Give the plan a name."),
    "/roles": ("roles_missing", "Add roles: every role that a task names, with a description."),
    "/tasks": ("tasks_missing", "Add tasks; a plan has at least one."),
    "/policies/retry": (
        "retry_missing",
        'Say in policies what a failure means, as in "retry": {"maxAttempts": 2, "onFailure": "reopen"}.',
    ),
    "/policies/retry/maxAttempts": ("retry_missing", "Say how many attempts a task has in all (maxAttempts)."),
    "/policies/retry/onFailure": ("retry_missing", "Say what a failure means (onFailure): reopen, fail or block."),
    "/policies/maxParallelTasks": (
        "max_parallel_missing",
        "Say in policies how many tasks may run at once (maxParallelTasks).",
    ),
    "/tasks/*/id": ("task_id_missing", "Give the task a stable id."),
    "/tasks/*/title": ("title_missing", "Give the task a title that says what is to be done."),
    "/tasks/*/role": ("role_missing", "Give the task its one primary role."),
    "/tasks/*/completionCriteria": (
        "completion_criteria_missing",
        "Say what must be true when the task is done (completionCriteria).",
    ),
    "/tasks/*/retry/maxAttempts": ("retry_missing", "Say how many attempts the task has in all (maxAttempts)."),
    "/tasks/*/retry/onFailure": ("retry_missing", "Say what a failure means (onFailure): reopen, fail or block."),
    "/tasks/*/outputs/*/name": ("output_unnamed", "Give the output a name."),
}
# The same for a field with a wrong value.
_WRONG: Mapping[str, tuple[str, str]] = {
    "/version": ("version_unknown", 'Set version to "1.0", the version of plan.json that this RedKey reads.'),
    "/roles": ("roles_missing", "Make roles an object: every role that a task names, with a description."),
    "/roles/*": ("role_name_invalid", "Name the role with 1 to 27 letters, digits, dots, dashes or underscores."),
    "/tasks": ("tasks_missing", "Make tasks a list with at least one task."),
    "/policies/retry": ("retry_invalid", "Make retry an object with maxAttempts and onFailure."),
    "/policies/retry/maxAttempts": ("retry_invalid", "Make maxAttempts a whole number from 1 to 100."),
    "/policies/retry/onFailure": ("retry_invalid", "Make onFailure one of reopen, fail and block."),
    "/policies/maxParallelTasks": ("max_parallel_invalid", "Make maxParallelTasks a whole number from 1 to 1,000."),
    "/tasks/*/role": ("role_not_one", "Name exactly one primary role, as text; split the task when it needs two."),
    "/tasks/*/completionCriteria": (
        "completion_criteria_missing",
        "Make completionCriteria a list of 1 to 100 sentences that say what must be true when the task is done.",
    ),
    "/tasks/*/completionCriteria/*": (
        "completion_criterion_blank",
        "Say something that can be checked, in at most 1,000 characters.",
    ),
    "/tasks/*/outputs/*": ("output_unnamed", f"Name the output: {_SLUG}."),
    "/tasks/*/outputs/*/name": ("output_unnamed", f"Name the output: {_SLUG}."),
    "/tasks/*/approvalGate": (
        "approval_gate_invalid",
        "Make approvalGate true, false, or an object with approvers, deadlineSeconds and onDeadline.",
    ),
    "/tasks/*/approvalGate/approvers": (
        "approval_gate_invalid",
        "List at most 32 approvers, each once: roles of the plan, agents (agt_...) or keys (key_...).",
    ),
    "/tasks/*/approvalGate/deadlineSeconds": (
        "approval_gate_invalid",
        "Make deadlineSeconds a whole number from 1 to 31,536,000.",
    ),
    "/tasks/*/approvalGate/onDeadline": ("approval_gate_invalid", "Make onDeadline reject or hold."),
    "/tasks/*/retry": ("retry_invalid", "Make retry an object with maxAttempts and onFailure."),
    "/tasks/*/retry/maxAttempts": ("retry_invalid", "Make maxAttempts a whole number from 1 to 100."),
    "/tasks/*/retry/onFailure": ("retry_invalid", "Make onFailure one of reopen, fail and block."),
}


# Findings of one schema keyword that differ from the others at the same pointer.
_BY_KEYWORD: Mapping[tuple[str, str], tuple[str, str]] = {
    ("/tasks", "schema_maxItems"): ("tasks_too_many", TOO_MANY_TASKS),
    ("/tasks/*/dependsOn", "schema_maxItems"): (
        "dependencies_too_many",
        "The task waits for more than 1,000 others; put tasks between that gather their results.",
    ),
    ("/tasks/*/dependsOn", "schema_uniqueItems"): (
        "dependency_repeated",
        "A dependency is listed twice; list each one once.",
    ),
}


def shape(plan: Any, limit: int) -> list[Finding]:
    """List the errors that the schema finds in a plan, about `limit` at most; each check once per pointer."""
    found: dict[tuple[str, str], Finding] = {}
    for finding in compile_schema(SCHEMA).findings(plan, limit):
        for code, where, sentence in _named(plan, finding):
            found.setdefault((code, where), Finding(code, where, sentence))
    return list(found.values())


def _named(plan: Any, finding: Finding) -> Iterator[tuple[str, str, str]]:
    """Return a finding as (code, pointer, sentence)."""
    where, here = _INDEX.sub("*", _ROLE.sub("/roles/*", finding.pointer)), finding.pointer
    if finding.code == _REQUIRED:
        # Two checks read the policies, so both are reported when the policies are missing.
        below = ("/maxParallelTasks", "/retry") if where == "/policies" else ("",)
        for name in below:
            code, sentence = _MISSING.get(where + name, (finding.code, finding.message))
            yield code, here + name, sentence
    elif where == "/tasks/*/id":
        yield "task_id_invalid", here, _about_id(_at(plan, here))
    else:
        known = _BY_KEYWORD.get((where, finding.code)) or _WRONG.get(where, (finding.code, finding.message))
        yield known[0], here, known[1]


def _about_id(value: Any) -> str:
    """Say what is wrong with an id; characters that look like others are named."""
    if isinstance(value, str):
        strange = next((sign for sign in value if not sign.isascii()), None)
        if strange is not None:
            name = unicodedata.name(strange, "a character without a name")
            return f"The id holds U+{ord(strange):04X} ({name}); write it in plain ASCII: {_SLUG}."
        if value != value.lower():
            return f"Write the id in lower case: {_SLUG}."
    return f"Make the id {_SLUG}."


def _at(plan: Any, pointer: str) -> Any:
    """Return the value at the pointer of a finding."""
    found = plan
    for step in pointer.split("/")[1:]:
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found
