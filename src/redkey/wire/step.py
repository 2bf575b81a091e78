"""The envelopes between a workflow and a stateless agent (agent-protocol, seed 003), typed and checked.

A *step* is one call of an agent: an input goes in, an output comes out, and the workflow writes the artifacts.
Readers are tolerant: older forms are first brought into this one (`step_legacy`). Where artifacts may lie is
`step_paths`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from redkey.errors import Finding, WireRefused, pointer
from redkey.wire import step_legacy_input, step_legacy_output
from redkey.wire.schema import compile_schema
from redkey.wire.step_legacy import Migrated
from redkey.wire.step_paths import normal, path_findings

SCHEMAS = "definitions/step"
FIXTURES = "fixtures/agent-protocol"
# Outputs carry whole files, so they may be larger than a wire's content.
SIZE_LIMIT = 16 * 1024 * 1024

Kind = Literal["input", "output"]
Recommendation = Literal["proceed", "retry", "escalate"]


class StepContext(msgspec.Struct, frozen=True):
    """Where in a workflow a step stands; a feature has no id before it is scaffolded."""

    feature_id: str | None
    workflow: str
    iteration: int


class StepTask(msgspec.Struct, frozen=True):
    """What the agent is to do."""

    action: str
    params: dict[str, Any]


class StepInput(msgspec.Struct, frozen=True):
    """What a workflow hands to an agent: paths, never content, and no names of other agents."""

    context: StepContext
    paths: dict[str, str | tuple[str, ...]]
    task: StepTask
    prior_context: tuple[str, ...] | None = None


class StepArtifact(msgspec.Struct, frozen=True):
    """A whole file for the workflow to write."""

    path: str
    operation: Literal["create", "update"]
    content: str


class StepOutput(msgspec.Struct, frozen=True):
    """What an agent hands back; `success` says that it did its job, not that it found no problems."""

    success: bool
    summary: str
    artifacts: tuple[StepArtifact, ...]
    recommendation: Recommendation
    notes: tuple[str, ...] | None = None


def read_step_input(value: Any) -> StepInput:
    """The input in a decoded JSON value of today's or an older form; WireRefused when it is none."""
    return msgspec.convert(_read("input", value), StepInput, strict=False)


def read_step_output(value: Any) -> StepOutput:
    """The output in a decoded JSON value of today's or an older form; WireRefused when it is none."""
    return msgspec.convert(_read("output", value), StepOutput, strict=False)


def check_step(value: Any, kind: Kind | None = None) -> tuple[Kind | None, list[Finding]]:
    """The kind of a decoded envelope and what there is to say of it; older forms are read, with warnings.

    Pointers of warnings are into the value, pointers of errors into today's form of it.
    """
    kind = kind or kind_of(value)
    if kind is None:
        text = "neither an input (context, paths, task) nor an output (success, artifacts, recommendation)"
        return None, [Finding("step_kind_unknown", "", text)]
    migrated = migrate(kind, value)
    return kind, [*migrated.changes, *validate_step(migrated.value, kind)]


def migrate(kind: Kind, value: Any) -> Migrated:
    """Today's form of an envelope, and what was changed or lost on the way."""
    return step_legacy_input.migrate_input(value) if kind == "input" else step_legacy_output.migrate_output(value)


def kind_of(value: Any) -> Kind | None:
    """Whether a value is meant as an input or as an output, told by the fields it has."""
    if not isinstance(value, dict):
        return None
    outward = len(value.keys() & step_legacy_output.SIGNS)
    inward = len(value.keys() & step_legacy_input.SIGNS)
    if outward == inward:
        return None
    return "output" if outward > inward else "input"


def validate_step(value: Any, kind: Kind) -> list[Finding]:
    """Everything wrong with a decoded envelope of today's form."""
    findings = compile_schema(f"{SCHEMAS}/{kind}.schema.json").findings(value)
    if findings:
        return findings
    return list(_input_paths(value) if kind == "input" else _artifact_paths(value))


def _read(kind: Kind, value: Any) -> Any:
    migrated = migrate(kind, value).value
    errors = [finding for finding in validate_step(migrated, kind) if finding.severity == "error"]
    if errors:
        raise WireRefused(errors)
    return migrated


def _input_paths(value: dict[str, Any]) -> Iterator[Finding]:
    """An input's paths are read and never written, so one that leads out is unusual and not dangerous."""
    for name, paths in value["paths"].items():
        at = pointer(["paths", name])
        if isinstance(paths, str):
            yield from path_findings(paths, at, directory=True, severity="warning")
            continue
        for index, path in enumerate(paths):
            yield from path_findings(path, f"{at}/{index}", directory=True, severity="warning")


def _artifact_paths(value: dict[str, Any]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, artifact in enumerate(value["artifacts"]):
        at = f"/artifacts/{index}/path"
        yield from path_findings(artifact["path"], at)
        first = seen.setdefault(normal(artifact["path"]), index)
        if first != index:
            yield Finding("artifact_duplicate", at, f"artifact {first} has the same path; only one can be written")
