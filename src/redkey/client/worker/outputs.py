"""Outputs: what a handler returns fills the outputs that its task must have and that it did not make itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def share_out(outputs: Sequence[str], made: set[str], given: Any) -> tuple[dict[str, Any], Any]:
    """The artifacts to make of what was returned, by name, and what is left of it as the output.

    A mapping gives each missing output what it has under that name. Anything else is the one output that is missing.
    """
    missing = [name for name in outputs if name not in made]
    if not missing or given is None:
        return {}, given
    if isinstance(given, Mapping):
        named = {name: given[name] for name in missing if name in given}
        if named:
            return named, {name: value for name, value in given.items() if name not in named} or None
    if len(missing) == 1:
        return {missing[0]: given}, None
    return {}, given
