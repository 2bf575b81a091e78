"""What a Hedera network's refusals mean to an operator, and the next step for each."""

from __future__ import annotations

from redkey.errors import NetworkRefused

_ACCOUNT, _TOPIC = "check `hedera.operator` and `hedera.network`", "check `hedera.topic` and `hedera.network`"
_CLOCK, _FUND, _FEE = "set the clock (NTP) and retry", "send HBAR to the account", "raise `hedera.max_custom_fee_usd`"

# The network's status -> our code, what is wrong, and the next step.
_MEANINGS = {
    "INVALID_SIGNATURE": ("key_wrong", "the key is not the one that is asked for", "check `hedera.key_file`"),
    "PAYER_ACCOUNT_NOT_FOUND": ("payer_unknown", "the account does not exist on this network", _ACCOUNT),
    "INVALID_NODE_ACCOUNT": ("network_wrong", "the node is not of this network", "check `hedera.nodes`"),
    "INSUFFICIENT_PAYER_BALANCE": ("balance_empty", "the account cannot pay the fee", _FUND),
    "INSUFFICIENT_TX_FEE": ("fee_above_limit", "the fee is above the limit", "raise `hedera.max_fee_usd`"),
    "TRANSACTION_EXPIRED": ("transaction_expired", "it came too late, or this machine's clock is behind", _CLOCK),
    "INVALID_TRANSACTION_START": ("clock_ahead", "this machine's clock is ahead of the network's", _CLOCK),
    "INVALID_TOPIC_ID": ("topic_unknown", "the topic is not on this network, or was deleted", _TOPIC),
    "UNAUTHORIZED": ("topic_foreign", "the topic belongs to another account", _TOPIC),
    "MESSAGE_SIZE_TOO_LARGE": ("message_too_large", "a message has at most 1,024 bytes", "send a smaller one"),
    "NO_VALID_MAX_CUSTOM_FEE": ("custom_fee_not_allowed", "the topic has a fee of its own, none is allowed", _FEE),
    "MAX_CUSTOM_FEE_LIMIT_EXCEEDED": ("custom_fee_above_limit", "the topic's own fee is above the limit", _FEE),
    "INSUFFICIENT_PAYER_BALANCE_FOR_CUSTOM_FEE": ("balance_empty", "the account cannot pay the topic's fee", _FUND),
}
CODES = frozenset(code for code, _, _ in _MEANINGS.values())


def refusal(status: str, account: str, network: str) -> NetworkRefused:
    """Return the error for a status of the network, with the next step."""
    code, wrong, step = _MEANINGS.get(status, ("network_refused", "the network refused the transaction", "see status"))
    return NetworkRefused(f"{account} on {network}: {wrong} ({status}); {step}", code=code, status=status)
