"""Login codes over HTTP: a failed exchange counts as a failed login."""

from __future__ import annotations

from redkey.api.bound import bound
from redkey.api.call import Call
from redkey.commands.decision import Refused
from redkey.services.use_cases import login_codes as use_cases
from redkey.shapes.login_codes import LoginCodeExchange, LoginToken


def exchange(call: Call, request: LoginCodeExchange) -> LoginToken:
    """Exchange a code for a token."""
    try:
        return use_cases.exchange_login_code.run(call, request)
    except Refused as refused:
        if refused.code == "login_code_invalid":
            call.services.logins.failed(call.exchange.connection.address, "")
        raise


ROUTES = [bound(use_cases.create_login_code), bound(use_cases.exchange_login_code, exchange)]
