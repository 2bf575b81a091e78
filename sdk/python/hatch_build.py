"""Which files belong to `redkey-client`. In a checkout they are two folders up, in an sdist beside this file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Packages and modules of `src/redkey`, whole. The pyproject.toml of `redkey` leaves out the same ones; a test proves
# that no file is in both wheels, and that together they have every file.
SOURCES = (
    *("__init__.py", "py.typed", "errors.py", "config.py", "discovery.py"),
    *("shapes", "wire", "ledger", "client", "adapters"),
)
# What `redkey.wire` reads at run time.
CONTRACTS = ("contracts", "definitions", "schemas")


class ClientSources(BuildHookInterface):  # type: ignore[type-arg]
    """Put the client's files into its sdist and its wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; an editable install has the whole of `src` on its path and needs none."""
        if version == "editable":
            return
        here = Path(self.root)
        tree = here if (here / "src").is_dir() else here.parents[1]
        source, contracts = ("src/redkey", ".") if self.target_name == "sdist" else ("redkey", "redkey/_contracts")
        for name in SOURCES:
            build_data["force_include"][str(tree / "src" / "redkey" / name)] = f"{source}/{name}"
        for name in CONTRACTS:
            build_data["force_include"][str(tree / name)] = f"{contracts}/{name}"
