"""What a network charged an operator for one topic, by the mirror's records."""

from __future__ import annotations

from redkey.hedera.network import Network

_MESSAGES = "CONSENSUSSUBMITMESSAGE"
# What changes a topic itself.
_CHANGES = ("CONSENSUSCREATETOPIC", "CONSENSUSUPDATETOPIC", "CONSENSUSDELETETOPIC")


def charged(network: Network, topic: str, *, changes: bool = False) -> dict[str, tuple[int, int]]:
    """Return what was paid, failed messages included: by transaction, whether it is a message, and the tinybars.

    With `changes` what was paid for the topic itself is there too.
    """
    account, known = network.operator.account, network.mirror.topic(topic)
    found: dict[str, tuple[int, int]] = {}
    if known is None:
        return found
    for kind in (_MESSAGES, *(_CHANGES if changes else ())):
        for one in network.mirror.transactions(account, kind, known.created_at):
            if one.entity_id == topic and one.transaction_id.startswith(f"{account}-"):
                found[one.transaction_id] = int(kind == _MESSAGES), one.paid_by(account)
    return found
