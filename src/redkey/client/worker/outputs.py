"""Outputs: fill the required outputs that the handler has not recorded from its returned value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def share_out(outputs: Sequence[str], recorded: set[str], returned: Any) -> tuple[dict[str, Any], Any]:
    """Return the artifacts to record from the returned value, by name, and the rest as the output.

    A mapping gives each missing output the value under its name. Any other value is the one missing output.
    """
    missing = [name for name in outputs if name not in recorded]
    if not missing or returned is None:
        return {}, returned
    if isinstance(returned, Mapping):
        named = {name: returned[name] for name in missing if name in returned}
        if named:
            return named, {name: value for name, value in returned.items() if name not in named} or None
    if len(missing) == 1:
        return {missing[0]: returned}, None
    return {}, returned
