"""A stand-in Hedera network, and clients for it: our own, and the official SDK's."""

from __future__ import annotations

from hiero_sdk_python import AccountId, Client, PrivateKey
from hiero_sdk_python.consensus.topic_create_transaction import TopicCreateTransaction

from redkey.hedera.addresses import Addresses
from redkey.hedera.network import Network, Operator, Terms
from redkey.hedera.standin.server import StandIn
from redkey.ledger.fees import HBAR


def addresses_of(standin: StandIn) -> Addresses:
    """The addresses of a stand-in network."""
    return Addresses("local", standin.nodes, standin.rest, standin.mirror)


def sdk_client(standin: StandIn, operator: Operator) -> Client:
    """The SDK's client with an operator."""
    nodes = {address: AccountId.from_string(node) for address, node in standin.nodes.items()}
    client = Client.for_network(nodes, network_name="loopback")
    client.network.mirror_address = standin.mirror
    return client.set_operator(AccountId.from_string(operator.account), operator.key)


def create_topic(network: Network, key: PrivateKey, memo: str = "a topic", *, sign: bool = False) -> str:
    """Create a topic with our own client; `sign` adds a signature of a key that is not the operator's."""
    transaction = TopicCreateTransaction(memo=memo, admin_key=key.public_key(), submit_key=key.public_key())
    name = network.ids.draw()
    network.send(transaction, name, Terms(5 * HBAR, keys=(key,) if sign else ()))
    return network.wait(name).entity
