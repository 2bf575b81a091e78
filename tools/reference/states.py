"""The page about the states of a task, with diagrams, generated from the state machine that reducers run on."""

from __future__ import annotations

from typing import Any

from redkey.wire.catalogue import contract
from tools.reference.markdown import table

_INTRO = """# The states of a task

A task is done in *attempts*; each has one of these states, and the events on the arrows change it. Any other change is
refused. A lost claim, an artifact and a heartbeat change no state.
"""


def page() -> str:
    """The diagram, the table of all transitions, and the map to A2A."""
    machine = contract("task-state-machine.json")
    return "\n".join([_INTRO, _diagram(machine), _transitions(machine), _guards(machine), _a2a()])


def _diagram(machine: Any) -> str:
    arrows: dict[tuple[str, str], list[str]] = {}
    for one in machine["transitions"]:
        if one["to"] in ("same", "resume"):
            continue
        for start in one["from"]:
            arrows.setdefault((start, one["to"]), []).append(one["on"].removeprefix("task."))
    lines = ["```mermaid", "stateDiagram-v2"]
    for (start, end), names in arrows.items():
        begin = "[*]" if start == machine["initial"] else start
        lines.append(f"    {begin} --> {end}: {', '.join(dict.fromkeys(names))}")
    lines += [f"    {name} --> [*]" for name, state in machine["states"].items() if state["terminal"]]
    return "\n".join([*lines, "```", ""])


def _transitions(machine: Any) -> str:
    rows = [
        (f"`{one['on']}`", ", ".join(one["from"]), one["to"], one.get("guard", "")) for one in machine["transitions"]
    ]
    note = "`same` changes no state; `resume` goes back to the state before the lease expired.\n"
    return "## Transitions\n\n" + note + "\n" + table(("event", "from", "to", "guard"), rows)


def _guards(machine: Any) -> str:
    return "## Guards\n\n" + table(("guard", "holds when"), [(f"`{n}`", text) for n, text in machine["guards"].items()])


def _a2a() -> str:
    contract_map = contract("a2a-task-state-map.json")
    rows = []
    for name, cases in contract_map["events"].items():
        for case in cases:
            when = "; ".join(f"{key}: {_words(value)}" for key, value in case.get("when", {}).items())
            rows.append((f"`{name}`", when, case["to"], case["object"]))
    titles = ("event", "when", "A2A state", "what is sent")
    return "## As A2A\n\n" + contract_map["about"] + "\n\n" + table(titles, rows)


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value).lower()
