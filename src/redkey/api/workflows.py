"""Workflows over HTTP: what is not plain JSON of a use case, namely Mermaid text and live events."""

from __future__ import annotations

from redkey.api.bound import bound
from redkey.api.call import Call, Raw
from redkey.api.events import listed_or_live
from redkey.api.mermaid import mermaid
from redkey.services.use_cases import events
from redkey.services.use_cases import workflows as use_cases
from redkey.shapes.workflows import MERMAID, Graph


async def workflow_graph(call: Call) -> Graph | Raw:
    """A run as nodes and edges, or as Mermaid text."""
    graph = await use_cases.get_workflow_graph(call, call.path["workflow_id"], call.query)
    if call.query.format == "mermaid" or call.accepts(MERMAID.encode()):
        return Raw(mermaid(graph).encode(), MERMAID)
    return graph


ROUTES = [
    bound(use_cases.start_workflow),
    bound(use_cases.list_workflows),
    bound(use_cases.get_workflow),
    bound(use_cases.get_workflow_state),
    bound(use_cases.get_workflow_graph, workflow_graph),
    listed_or_live(events.workflow_events, events.follow_workflow),
    bound(use_cases.pause_workflow),
    bound(use_cases.resume_workflow),
    bound(use_cases.cancel_workflow),
]
