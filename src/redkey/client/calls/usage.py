"""Usage and credits: what was counted, what may be spent, what requests cost.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, get
from redkey.shapes.usage import By, UsageReport


class Usage(Resource[Mode]):
    """Usage and credits: what was counted, what may be spent, what requests cost."""

    @Operation
    def get(self, *, since: str | None = None, until: str | None = None, by: By | None = None) -> Request[UsageReport]:
        """Show the usage of the workspace. By task: the 1,000 most expensive ones."""
        return get("/usage", UsageReport, from_=since, to=until, by=by)
