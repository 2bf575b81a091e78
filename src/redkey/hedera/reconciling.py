"""What a network charged an operator for the messages of one topic, by the mirror's records."""

from __future__ import annotations

from redkey.hedera.network import Network


def charged(network: Network, topic: str) -> tuple[int, int]:
    """Return how many messages were paid for, failed ones included, and for how many tinybars."""
    account = network.operator.account
    paid = [
        one.paid_by(account)
        for one in network.mirror.transactions(account, "CONSENSUSSUBMITMESSAGE")
        if one.entity_id == topic and one.transaction_id.startswith(f"{account}-")
    ]
    return len(paid), sum(paid)
