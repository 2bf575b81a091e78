"""The result of validating a plan: whether it may run, its errors and its warnings."""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.errors import Finding


class Validation(msgspec.Struct, frozen=True):
    """Errors keep the plan from running; warnings are advice."""

    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]

    @property
    def valid(self) -> bool:
        return not self.errors

    def as_json(self) -> dict[str, Any]:
        """Return the result as the API and `redkey plan validate --json` show it."""
        return {"valid": self.valid, "errors": _shown(self.errors), "warnings": _shown(self.warnings)}


def _shown(findings: tuple[Finding, ...]) -> list[dict[str, str]]:
    return [{"code": one.code, "path": one.pointer, "message": one.message} for one in findings]
