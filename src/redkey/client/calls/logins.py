"""Login codes: a link that logs a browser in without a key. A code is exchanged once for a token.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from redkey.client.operation import Mode, Operation, Resource
from redkey.client.request import Request, post, without_key
from redkey.shapes.login_codes import LoginCode, LoginToken


class Logins(Resource[Mode]):
    """Login codes: a link that logs a browser in without a key. A code is exchanged once for a token."""

    @Operation
    def create(self) -> Request[LoginCode]:
        """Create a code that can be used once, within ten minutes. A browser exchanges it for a token of your key."""
        return post("/login-codes", LoginCode)

    @Operation
    def exchange(self, *, code: str, scope: str | None = None) -> Request[LoginToken]:
        """Exchange a login code for a token of the key that created it, with its scopes or fewer."""
        return without_key(post("/login-codes/exchange", LoginToken, code=code, scope=scope))
