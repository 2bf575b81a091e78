"""Workflow definitions: validated, drafted, changed, published. A published version never changes."""

from __future__ import annotations

from typing import Any

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.replies import Page, Reply
from redkey.client.request import Request, at, get, patch, post

Plan = dict[str, Any]


class PlanFinding(Reply, frozen=True, kw_only=True):
    """One thing that stands against a plan, or could be better about it: where, and what to do."""

    code: str
    path: str
    message: str


class Validation(Reply, frozen=True, kw_only=True):
    """Whether a plan may run; errors stand against it, warnings are advice."""

    valid: bool
    errors: tuple[PlanFinding, ...]
    warnings: tuple[PlanFinding, ...]


class Draft(Reply, frozen=True, kw_only=True):
    """A draft; `validation` says what keeps it from being published."""

    definition_id: str
    version: int
    status: str
    name: str = ""
    revision: int
    validation: Validation
    updated_at: str


class DefinitionSummary(Reply, frozen=True, kw_only=True):
    """A definition in a list. `version` is the last one that was published, `draftVersion` the one in work."""

    definition_id: str
    name: str = ""
    status: str
    version: int | None = None
    draft_version: int | None = None
    erased: bool = False


class Version(Reply, frozen=True, kw_only=True):
    """One published version."""

    version: int
    published_at: str
    published_by: str
    event_id: str


class Definition(DefinitionSummary, frozen=True, kw_only=True):
    """A definition with a plan: the draft's, else that of the last version, else that of the version asked for."""

    shown_version: int
    revision: int | None = None
    plan: dict[str, Any] | None = None
    validation: Validation | None = None
    versions: tuple[Version, ...]


class Published(Reply, frozen=True, kw_only=True):
    """A version that can be run and never changes."""

    definition_id: str
    version: int
    status: str
    event_id: str
    validation: Validation


class Definitions(Resource[Mode]):
    """Plans that are kept, versioned and run again."""

    @Operation
    def validate(self, plan: Plan) -> Request[Validation]:
        """Whether a plan may run, and what could be better about it; an invalid plan is an answer, not an error."""
        return post("/workflow-definitions/validate", Validation, plan=plan)

    @Operation
    def create(self, plan: Plan) -> Request[Draft]:
        """Keep a plan as the draft of a new definition."""
        return post("/workflow-definitions", Draft, plan=plan)

    @Listing
    def list(self, *, limit: int | None = None, after: str | None = None) -> Request[Page[DefinitionSummary]]:
        """The definitions of the workspace."""
        return get("/workflow-definitions", Page[DefinitionSummary], limit=limit, after=after)

    @Operation
    def get(self, definition_id: str, *, version: int | None = None) -> Request[Definition]:
        """One definition with its plan: the draft's, else the last version's, else that of the version asked for."""
        return get(at("workflow-definitions", definition_id), Definition, version=version)

    @Operation
    def update(self, definition_id: str, plan: Plan, *, revision: int | None = None) -> Request[Draft]:
        """Change the draft; with `revision` only if nobody else did since."""
        return patch(at("workflow-definitions", definition_id), Draft, plan=plan, revision=revision)

    @Operation
    def create_version(self, definition_id: str, plan: Plan | None = None) -> Request[Draft]:
        """Begin the draft of the next version, from the last one or from a plan."""
        return post(at("workflow-definitions", definition_id, "versions"), Draft, plan=plan)

    @Operation
    def publish(self, definition_id: str) -> Request[Published]:
        """Publish the draft."""
        return post(at("workflow-definitions", definition_id, "publish"), Published)
