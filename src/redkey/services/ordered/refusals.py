"""The errors that callers see if a message was not submitted: no details of the network, but the next step."""

from __future__ import annotations

from redkey.commands.decision import Refused
from redkey.errors import NetworkAway, NetworkRefused, RedKeyError

_AGAIN_SOON, _AGAIN_LATER = 2, 30


def told(failure: RedKeyError) -> RedKeyError:
    """Return the error that a caller sees in place of the network's failure."""
    if isinstance(failure, NetworkRefused):
        if failure.code == "balance_empty":
            text = "The ledger's fee cannot be paid now, and nothing was recorded."
            return Refused(402, "network_balance_empty", text)
        text = "The ledger refuses this server's messages, and nothing was recorded. The server's log says why."
        return Refused(503, "order_refused", text, retry_seconds=_AGAIN_LATER)
    if not isinstance(failure, NetworkAway):
        return failure
    if failure.code == "submission_in_doubt":
        text = "The request may have its place in the order; what became of it is not known yet."
        return Refused(503, "order_in_doubt", text, retry_seconds=_AGAIN_SOON)
    text = "The ledger does not answer now, and nothing was recorded."
    return Refused(503, "order_unavailable", text, retry_seconds=_AGAIN_SOON)
