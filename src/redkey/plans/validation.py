"""What a check of a plan gives: whether it may run, what stands against it, and what could be better."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.errors import Finding


class Validation(msgspec.Struct, frozen=True):
    """Errors stand against a run; warnings are advice."""

    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]

    @property
    def valid(self) -> bool:
        return not self.errors

    def as_json(self) -> dict[str, Any]:
        """As the API and `redkey plan validate --json` show it."""
        return {"valid": self.valid, "errors": _shown(self.errors), "warnings": _shown(self.warnings)}


def _shown(findings: tuple[Finding, ...]) -> list[dict[str, str]]:
    return [{"code": one.code, "path": one.pointer, "message": one.message} for one in findings]
