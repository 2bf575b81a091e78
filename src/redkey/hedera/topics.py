"""Create topics that only their operator may write to."""

from __future__ import annotations

from hiero_sdk_python.consensus.topic_create_transaction import TopicCreateTransaction

from redkey.errors import NetworkAway
from redkey.hedera.network import Network, Terms
from redkey.hedera.refusals import refusal
from redkey.ledger.fees import CREATE_TOPIC

# The fee may be this many times the price before the network's answer is refused.
_MARGIN = 5


def create_topic(network: Network, memo: str) -> str:
    """Create a topic with the operator's key as submit key and admin key; return its id."""
    key = network.operator.key.public_key()
    transaction, name = TopicCreateTransaction(memo=memo, admin_key=key, submit_key=key), network.ids.draw()
    limit = network.mirror.exchange_rate().tinybars(CREATE_TOPIC * _MARGIN)
    try:
        network.send(transaction, name, Terms(limit))
    except NetworkAway as away:
        if away.code != "submission_in_doubt":
            raise
    found = network.wait(name)
    if found.state == "recorded":
        return found.entity
    if found.state == "failed":
        raise refusal(found.status, network.operator.account, network.addresses.name)
    text = f"{name} is {found.state}; look for it on {network.addresses.rest} before you create another topic"
    raise NetworkAway(text, code="submission_in_doubt")
