"""Find the contract files: `schemas/`, `fixtures/`, `contracts/`, `definitions/`, and the plan of the example.

They are at the root of the repository, and in the wheel under `redkey/_contracts/`. Only this module knows these paths.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import orjson

from redkey.errors import ContractBroken


@cache
def root() -> Path:
    """Return the folder with the four contract folders."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "_contracts", package.parents[1]):
        if (place / "contracts" / "agent-wire").is_dir():
            return place
    raise ContractBroken("no contract files were found beside the redkey package")


def load(relative: str) -> Any:
    """Load one contract file as JSON; `relative` as in `schemas/agent-wire/v1.1/envelope.schema.json`."""
    path = root() / relative
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as cause:
        raise ContractBroken(f"{relative}: {cause}") from cause


def names(folder: str, suffix: str) -> list[str]:
    """Return the file names in a contract folder that end with `suffix`, sorted."""
    return sorted(path.name for path in (root() / folder).iterdir() if path.name.endswith(suffix))
