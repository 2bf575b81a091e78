"""Workflow definitions: validate, draft, change and publish them. A published version never changes.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, get, patch, post
from redkey.shapes.definitions import Definition, DefinitionSummary, Draft, PlanForecast, Published, Validation
from redkey.shapes.fields import Page


class Definitions(Resource[Mode]):
    """Workflow definitions: validate, draft, change and publish them. A published version never changes."""

    @Operation
    def validate(self, plan: Mapping[str, Any]) -> Request[Validation]:
        """Check a plan without saving or starting it. The body is `{plan: ...}`, or plan.json itself; any JSON gets a
        result.
        """
        return post("/workflow-definitions/validate", Validation, plan=plan)

    @Operation
    def simulate(
        self,
        plan: Mapping[str, Any],
        *,
        agents: Mapping[str, int] | None = None,
        seconds: Mapping[str, float] | None = None,
        each_seconds: float | None = None,
        gate_seconds: float | None = None,
    ) -> Request[PlanForecast]:
        """Run a plan of up to 1,000 tasks in memory, under a simulated clock: how long it takes, who is busy, who waits
        for whom. It uses the same code as a real run. Nothing is recorded.
        """
        return post(
            "/workflow-definitions/simulate",
            PlanForecast,
            plan=plan,
            agents=agents,
            seconds=seconds,
            each_seconds=each_seconds,
            gate_seconds=gate_seconds,
        )

    @Operation
    def create(self, plan: Mapping[str, Any]) -> Request[Draft]:
        """Save a plan as the draft of a new definition."""
        return post("/workflow-definitions", Draft, plan=plan)

    @Listing
    def list(
        self, *, state: Literal["draft", "published"] | None = None, limit: int | None = None, after: str | None = None
    ) -> Request[Page[DefinitionSummary]]:
        """List the definitions of the workspace, by id."""
        return get("/workflow-definitions", Page[DefinitionSummary], state=state, limit=limit, after=after)

    @Operation
    def get(self, definition_id: str, *, version: int | None = None) -> Request[Definition]:
        """Show a definition with its versions and a plan."""
        return get(at("workflow-definitions", definition_id), Definition, version=version)

    @Operation
    def update(self, definition_id: str, plan: Mapping[str, Any], *, revision: int) -> Request[Draft]:
        """Change the draft; a published version never changes. A list of the patch takes the place of the whole list,
        so the patch is for one revision only: after another change, read the draft again.
        """
        return patch(at("workflow-definitions", definition_id), Draft, plan=plan, revision=revision)

    @Operation
    def create_version(self, definition_id: str, plan: Mapping[str, Any] | None = None) -> Request[Draft]:
        """Create the draft of the next version, from the plan in the request or from the last version's."""
        return post(at("workflow-definitions", definition_id, "versions"), Draft, plan=plan)

    @Operation
    def publish(self, definition_id: str, *, extensions: Mapping[str, Any] | None = None) -> Request[Published]:
        """Publish the draft: from now on it can be run, and never changes."""
        return post(at("workflow-definitions", definition_id, "publish"), Published, extensions=extensions)
