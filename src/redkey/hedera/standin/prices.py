"""What a stand-in network charges, by the published price table."""

from __future__ import annotations

from hiero_sdk_python.hapi.services.transaction_pb2 import TransactionBody

from redkey.hedera.standin.state import NetworkState, id_of
from redkey.ledger import fees

_FIXED = {
    "consensusUpdateTopic": fees.UPDATE_TOPIC,
    "consensusDeleteTopic": fees.DELETE_TOPIC,
    "cryptoCreateAccount": fees.CREATE_ACCOUNT,
    "cryptoTransfer": fees.TRANSFER,
}


def price_of(state: NetworkState, body: TransactionBody, signatures: int) -> int:
    """Return the price of a transaction in tinycents."""
    return _listed(state, body, signatures) * state.percent // 100


def _listed(state: NetworkState, body: TransactionBody, signatures: int) -> int:
    kind = body.WhichOneof("data")
    if kind == "consensusSubmitMessage":
        message = body.consensusSubmitMessage
        topic = state.topics.get(id_of(message.topicID))
        has_fees = topic is not None and bool(topic.custom_fees)
        return fees.submit_price(len(message.message), signatures=signatures, custom_fees=has_fees)
    if kind == "consensusCreateTopic":
        base = fees.CREATE_TOPIC_WITH_FEES if body.consensusCreateTopic.custom_fees else fees.CREATE_TOPIC
    else:
        base = _FIXED[kind]
    return base + max(0, signatures - 1) * fees.SIGNATURE
