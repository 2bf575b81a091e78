"""The envelopes between a workflow and a stateless agent (agent-protocol, seed 003), typed and checked.

A *step* is one call of an agent: an input goes in, an output comes out, and the workflow writes the artifacts.
Older forms are migrated before they are read (`step_legacy`). `step_paths` checks the paths of artifacts.
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
    """The place of a step in its workflow; a feature has no id before it is scaffolded."""

    feature_id: str | None
    workflow: str
    iteration: int


class StepTask(msgspec.Struct, frozen=True):
    """The work that the agent must do."""

    action: str
    params: dict[str, Any]


class StepInput(msgspec.Struct, frozen=True):
    """The input of an agent: paths, never content, and no names of other agents."""

    context: StepContext
    paths: dict[str, str | tuple[str, ...]]
    task: StepTask
    prior_context: tuple[str, ...] | None = None


class StepArtifact(msgspec.Struct, frozen=True):
    """A complete file that the workflow must write."""

    path: str
    operation: Literal["create", "update"]
    content: str


class StepOutput(msgspec.Struct, frozen=True):
    """The output of an agent; `success` means that the agent finished its work, not that it found no problems."""

    success: bool
    summary: str
    artifacts: tuple[StepArtifact, ...]
    recommendation: Recommendation
    notes: tuple[str, ...] | None = None


def read_step_input(value: Any) -> StepInput:
    """Read an input of the current or an older form from a decoded value; raise WireRefused if it is invalid."""
    return msgspec.convert(_read("input", value), StepInput, strict=False)


def read_step_output(value: Any) -> StepOutput:
    """Read an output of the current or an older form from a decoded value; raise WireRefused if it is invalid."""
    return msgspec.convert(_read("output", value), StepOutput, strict=False)


def check_step(value: Any, kind: Kind | None = None) -> tuple[Kind | None, list[Finding]]:
    """Return the kind of a decoded envelope and its findings; each change to an older form is a warning.

    Pointers of warnings are into the value; pointers of errors are into its current form.
    """
    kind = kind or kind_of(value)
    if kind is None:
        text = "neither an input (context, paths, task) nor an output (success, artifacts, recommendation)"
        return None, [Finding("step_kind_unknown", "", text)]
    migrated = migrate(kind, value)
    return kind, [*migrated.changes, *validate_step(migrated.value, kind)]


def migrate(kind: Kind, value: Any) -> Migrated:
    """Convert an envelope to the current form; return it with what was changed or lost."""
    return step_legacy_input.migrate_input(value) if kind == "input" else step_legacy_output.migrate_output(value)


def kind_of(value: Any) -> Kind | None:
    """Return whether a value is an input or an output, by its fields; None if that is unclear."""
    if not isinstance(value, dict):
        return None
    outward = len(value.keys() & step_legacy_output.SIGNS)
    inward = len(value.keys() & step_legacy_input.SIGNS)
    if outward == inward:
        return None
    return "output" if outward > inward else "input"


def validate_step(value: Any, kind: Kind) -> list[Finding]:
    """List everything wrong with a decoded envelope of the current form."""
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
    """Warn of paths outside the repository; input paths are only read, so they are not errors."""
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
