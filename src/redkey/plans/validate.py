"""Validate a plan: the schema first, then the rules that no schema can express; all findings at once, in linear time.

Each error has a code, a JSON pointer and a sentence that says what to do. Warnings come from `advise`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from redkey.errors import Finding, pointer
from redkey.plans.advise import advise
from redkey.plans.graph import cycles
from redkey.plans.outline import Outline, outline
from redkey.plans.shape import TASKS_LIMIT, TOO_MANY_TASKS, shape
from redkey.plans.validation import Validation
from redkey.wire.names import role_id

# The largest plan.json that is accepted.
BYTES_LIMIT = 16 * 1024 * 1024
# A hostile plan can be wrong in a million places; an author fixes no more than this at once.
ALIKE_LIMIT = 100
CHECK_LIMIT = 2000

PRINCIPAL = re.compile(r"(?:agt|key)_[0-7][0-9A-HJKMNP-TV-Z]{25}")
_STEPS = re.compile("([0-9]+)")
_SEPARATORS = str.maketrans("-.", "__")
# This many tasks of a cycle are named; the rest is counted.
_CYCLE_SHOWN = 12
# The nearest name is searched among this many names at most, and this many times.
_NAMES_COMPARED = 500
_NAMES_TOLD = 20
_TEXT_SHOWN = 60


def validate(plan: Any) -> Validation:
    """List the errors that keep a plan from running, and the warnings."""
    tasks = plan.get("tasks") if isinstance(plan, dict) else None
    if isinstance(tasks, list) and len(tasks) > TASKS_LIMIT:
        # Check nothing else: the plan must be split first.
        return Validation((Finding("tasks_too_many", "/tasks", TOO_MANY_TASKS),), ())
    sketch = outline(plan)
    return Validation(_told([*shape(plan, CHECK_LIMIT), *_meaning(sketch)]), _told(advise(sketch)))


def _told(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort the findings by their place in the plan, each once; of many with one code keep the first, and say so."""
    kinds: dict[str, dict[str, Finding]] = {}
    for one in findings:
        alike = kinds.setdefault(one.code, {})
        if len(alike) <= ALIKE_LIMIT:
            alike.setdefault(one.pointer, one)
    told = [one for alike in kinds.values() for one in list(alike.values())[:ALIKE_LIMIT]]
    cut = [_cut(next(iter(alike.values()))) for alike in kinds.values() if len(alike) > ALIKE_LIMIT]
    return (*sorted(told, key=_place), *cut)


def _cut(first: Finding) -> Finding:
    text = f"More than {ALIKE_LIMIT} findings are {first.code}; fix these and validate the plan again."
    return Finding("findings_cut", "", text, first.severity)


def _place(finding: Finding) -> list[tuple[bool, int, str]]:
    """Return the sort key of a finding: /tasks/2 comes before /tasks/10."""
    return [
        (part.isdigit(), int(part) if part.isdigit() else 0, "" if part.isdigit() else part)
        for part in _STEPS.split(finding.pointer)
    ]


def _meaning(sketch: Outline) -> Iterator[Finding]:
    for check in (_ids, _roles, _dependencies, _cycles, _outputs, _expected_inputs, _approvers):
        yield from islice(check(sketch), CHECK_LIMIT)


def _ids(sketch: Outline) -> Iterator[Finding]:
    alike: dict[str, str] = {}
    for task in sketch.tasks:
        if not task.id:
            continue
        first = sketch.places[task.id]
        if first != task.place:
            text = f"{_short(task.id)} is the id of /tasks/{first} already; give each task an id of its own."
            yield Finding("task_id_duplicate", f"{task.at}/id", text)
            continue
        other = alike.setdefault(task.id.translate(_SEPARATORS), task.id)
        if other != task.id:
            text = f"{_short(task.id)} and {_short(other)} are too easily taken for one another; rename one of them."
            yield Finding("task_id_lookalike", f"{task.at}/id", text)


def _roles(sketch: Outline) -> Iterator[Finding]:
    alike: dict[str, str] = {}
    for key, names in sketch.roles.items():
        other = alike.setdefault(key.casefold().translate(_SEPARATORS), names[0])
        for name in names[1:] if other == names[0] else names:
            text = (
                f"{_short(name)} and {_short(other)} are names of one role, or easily taken for it; keep one of them."
            )
            yield Finding("role_lookalike", pointer(["roles", name]), text)
    known = _Names([name for names in sketch.roles.values() for name in names])
    for task in sketch.tasks:
        if task.role and role_id(task.role) not in sketch.roles:
            text = f"There is no role {_short(task.role)} in the plan's roles; {known.nearest(task.role)}."
            yield Finding("role_unknown", f"{task.at}/role", text)


def _dependencies(sketch: Outline) -> Iterator[Finding]:
    known = _Names(list(sketch.places))
    for task in sketch.tasks:
        for index, key in enumerate(task.depends_on):
            if key and key not in sketch.places:
                text = f"There is no task {_short(key)} in the plan; {known.nearest(key)}."
                yield Finding("dependency_unknown", f"{task.at}/dependsOn/{index}", text)


def _cycles(sketch: Outline) -> Iterator[Finding]:
    for cycle in cycles(sketch.upstream):
        first, last = sketch.tasks[cycle[0]], sketch.tasks[cycle[-1]]
        closing = last.depends_on.index(first.id)
        names = [sketch.tasks[place].id for place in [*cycle, cycle[0]]]
        if len(names) > _CYCLE_SHOWN:
            names[_CYCLE_SHOWN - 2 : -1] = [f"... {len(names) - _CYCLE_SHOWN + 1:,} more ..."]
        text = "The task waits for itself" if len(cycle) == 1 else "These tasks wait for one another"
        way = " -> ".join(_short(name) for name in names)
        yield Finding("dependency_cycle", f"{last.at}/dependsOn/{closing}", f"{text}: {way}. Remove one dependency.")


def _outputs(sketch: Outline) -> Iterator[Finding]:
    makers: dict[str, tuple[int, int]] = {}
    for task in sketch.tasks:
        for index, name in enumerate(task.outputs):
            place = (task.place, index)
            first = makers.setdefault(name, place)
            if name and first != place:
                text = f"{_short(name)} is an output of /tasks/{first[0]} already; name each output once."
                yield Finding("output_duplicate", f"{task.at}/outputs/{index}", text)


def _expected_inputs(sketch: Outline) -> Iterator[Finding]:
    makers = {name: task for task in reversed(sketch.tasks) for name in task.outputs}
    for task in sketch.tasks:
        for index, name in enumerate(task.expected_inputs):
            if not name:
                continue
            here, maker = f"{task.at}/expectedInputs/{index}", makers.get(name)
            if maker is None:
                text = f"No task has the output {_short(name)}; name an output, or give it to the task as input."
                yield Finding("expected_input_unknown", here, text)
            elif maker.id not in task.depends_on:
                text = f"{_short(name)} is made by {_short(maker.called)}, for which this task does not wait;"
                yield Finding("expected_input_early", here, f"{text} add it to dependsOn.")


def _approvers(sketch: Outline) -> Iterator[Finding]:
    for task in sketch.tasks:
        for index, name in enumerate(task.approvers):
            if name and role_id(name) not in sketch.roles and not PRINCIPAL.fullmatch(name):
                text = f"{_short(name)} is no role of the plan, no agent (agt_...) and no key (key_...); name one."
                yield Finding("approver_unknown", f"{task.at}/approvalGate/approvers/{index}", text)


class _Names:
    """Known names, to suggest the nearest one. The search is slow, so it is done for a few names only."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names if len(names) <= _NAMES_COMPARED else ()
        self._left = _NAMES_TOLD

    def nearest(self, name: str) -> str:
        """Say what to do about an unknown name."""
        self._left -= 1
        near = get_close_matches(name[:_TEXT_SHOWN], self._names, 1) if self._left >= 0 else []
        return f"did you mean {_short(near[0])}" if near else "add it, or take the reference out"


def _short(text: str) -> str:
    """Quote a text of the plan: in ASCII, so that no character is hidden, and no longer than a line."""
    shown = ascii(text)[1:-1]
    return shown if len(shown) <= _TEXT_SHOWN else shown[: _TEXT_SHOWN - 3] + "..."
