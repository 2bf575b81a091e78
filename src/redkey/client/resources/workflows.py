"""Workflows: runs of plans."""

from __future__ import annotations

from collections.abc import Sequence

from redkey.client.calls import workflows
from redkey.client.flow import Flowing
from redkey.client.operation import Mode, Operation, Stream
from redkey.client.request import Request, at, get
from redkey.client.resources.ledger import following
from redkey.shapes.events import Event
from redkey.shapes.workflows import (
    Graph,
)


class Workflows(workflows.Workflows[Mode]):
    """The runs of plans."""

    @Operation
    def graph(self, workflow_id: str, *, at_sequence: int | None = None) -> Request[Graph]:
        """Return a run as nodes and edges."""
        return get(at("workflows", workflow_id, "graph"), Graph, at=at_sequence)

    @Operation
    def mermaid(self, workflow_id: str, *, at_sequence: int | None = None) -> Request[str]:
        """Return a run as a Mermaid diagram."""
        path = at("workflows", workflow_id, "graph")
        return get(path, str, accept="text/vnd.mermaid", format="mermaid", at=at_sequence)

    @Stream
    def follow(
        self, workflow_id: str, *, type: str | Sequence[str] | None = None, after: int | None = None
    ) -> Flowing[Event]:
        """Follow the run's events as they happen, without a gap, even after the run has ended."""
        return following(at("workflows", workflow_id, "events"), type=type, after=after)
