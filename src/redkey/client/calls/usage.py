"""Usage and credits: what was counted, what may be spent, what things cost.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, get
from redkey.shapes.usage import By, UsageReport


class Usage(Resource[Mode]):
    """Usage and credits: what was counted, what may be spent, what things cost."""

    @Operation
    def get(self, *, since: str | None = None, until: str | None = None, by: By | None = None) -> Request[UsageReport]:
        """What the workspace used. By task: the 1,000 that cost the most."""
        return get("/usage", UsageReport, from_=since, to=until, by=by)
