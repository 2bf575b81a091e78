"""Signup: anyone may create a workspace, if the operator of the server allows it.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, post, without_key
from redkey.shapes.signup import SignedUp


class Signup(Resource[Mode]):
    """Signup: anyone may create a workspace, if the operator of the server allows it."""

    @Operation
    def create(self, *, name: str | None = None) -> Request[SignedUp]:
        """Create a workspace of your own, with an admin key and starting credits, where the server allows it."""
        return without_key(post("/signup", SignedUp, name=name))
