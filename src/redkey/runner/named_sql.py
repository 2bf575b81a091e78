"""Read the statements of a `.sql` file; a comment such as `-- name: remember` names each one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def statements(file: Path) -> Mapping[str, str]:
    """Return the statements of a file by name."""
    parts = _NAMED.split(file.read_text(encoding="utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))
