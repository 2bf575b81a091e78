"""Statements of a `.sql` file, each under the name in the comment above it: `-- name: remember`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def statements(file: Path) -> Mapping[str, str]:
    """Read the statements of a file by their names."""
    parts = _NAMED.split(file.read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))
