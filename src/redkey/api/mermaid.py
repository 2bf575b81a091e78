"""A run as Mermaid text, which many tools draw."""

from __future__ import annotations

from redkey.shapes.workflows import Graph

# Fill and border colour of each state.
_COLOURS = {
    "waiting": ("#f3f4f6", "#9ca3af"),
    "available": ("#dbeafe", "#3b82f6"),
    "claimed": ("#fef3c7", "#f59e0b"),
    "working": ("#fef3c7", "#f59e0b"),
    "blocked": ("#fee2e2", "#ef4444"),
    "stuck": ("#fee2e2", "#ef4444"),
    "awaiting_approval": ("#ede9fe", "#8b5cf6"),
    "completed": ("#dcfce7", "#22c55e"),
    "failed": ("#fecaca", "#b91c1c"),
    "cancelled": ("#e5e7eb", "#6b7280"),
}


def mermaid(graph: Graph) -> str:
    """The graph as Mermaid text. Ids are slugs and titles are escaped, so no plan can inject diagram code."""
    numbers = {node.id: number for number, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for number, node in enumerate(graph.nodes):
        label = f"{_escaped(node.title or node.id)}<br/><small>{_escaped(node.role)}</small>"
        shape = f'{{{{"{label}"}}}}' if node.gated else f'["{label}"]'
        lines.append(f"  n{number}{shape}:::{node.state}")
    lines += [f"  n{numbers[edge.source]} --> n{numbers[edge.to]}" for edge in graph.edges]
    used = {node.state for node in graph.nodes}
    lines += [
        f"  classDef {state} fill:{fill},stroke:{border},color:#111827"
        for state, (fill, border) in _COLOURS.items()
        if state in used
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """Replace everything but letters, digits, spaces and a few harmless characters by Mermaid's numeric entities."""
    return "".join(char if char.isalnum() or char in " .,-_" else f"#{ord(char)};" for char in text[:80])
