"""Receipts over HTTP: JSON for programs, a page for people, and text formats for C2SP tools."""

from __future__ import annotations

from typing import Any

from redkey.api.auth import unauthenticated
from redkey.api.bound import bound
from redkey.api.call import Call, Raw
from redkey.api.page import receipt_page
from redkey.commands.decision import Refused
from redkey.services.use_cases import receipts as use_cases

_TEXT = "text/plain; charset=utf-8"


async def get_receipt(call: Call) -> Any:
    """The receipt of an event, as JSON or as a tlog-proof."""
    receipt = await use_cases.get_receipt(call, call.path["event_id"], call.query)
    return Raw(receipt.encode(), _TEXT) if isinstance(receipt, str) else receipt


async def show_receipt(call: Call) -> Any:
    """Show the receipt at its URL: a page for people, the whole receipt for programs."""
    try:
        document = await use_cases.show_receipt(call, call.path["event_id"])
    except Refused as refused:
        if refused.status == 401:
            # Limited like wrong keys: each request costs a search in all public workspaces.
            call.services.logins.failed(call.exchange.connection.address, "")
            raise unauthenticated(browses=call.accepts(b"text/html")) from refused
        raise
    return receipt_page(document) if call.accepts(b"text/html") else document


async def latest_checkpoint(call: Call) -> Any:
    """The newest signed head, as JSON or as the signed note itself."""
    checkpoint = await use_cases.latest_checkpoint(call)
    return Raw(checkpoint.note.encode(), _TEXT) if call.accepts(b"text/plain") else checkpoint


ROUTES = [
    bound(use_cases.get_receipt, get_receipt),
    bound(use_cases.show_receipt, show_receipt),
    bound(use_cases.latest_checkpoint, latest_checkpoint),
]
