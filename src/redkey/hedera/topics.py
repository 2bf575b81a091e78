"""Create, describe, hand over and delete topics of a Hedera network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hiero_sdk_python.consensus.topic_create_transaction import TopicCreateTransaction
from hiero_sdk_python.consensus.topic_delete_transaction import TopicDeleteTransaction
from hiero_sdk_python.consensus.topic_id import TopicId
from hiero_sdk_python.consensus.topic_update_transaction import TopicUpdateTransaction
from hiero_sdk_python.crypto.key_list import KeyList
from hiero_sdk_python.crypto.private_key import PrivateKey
from hiero_sdk_python.crypto.public_key import PublicKey
from hiero_sdk_python.transaction.transaction import Transaction

from redkey.errors import NetworkAway, NetworkRefused
from redkey.hedera.network import Network, Terms
from redkey.hedera.ordering import HederaTopic
from redkey.hedera.prices import FeeTerms, TopicPrices, may_write
from redkey.hedera.refusals import refusal
from redkey.ledger.fees import CREATE_TOPIC, DELETE_TOPIC, SIGNATURE, UPDATE_TOPIC
from redkey.services.ordered.hosting import TopicFacts

# The fee may be this many times the price before the network's answer is refused.
_MARGIN = 5


def create_topic(network: Network, memo: str, transaction_id: str = "") -> str:
    """Create a topic with the operator's key as submit key and admin key; return its id.

    Under one transaction id it is created once, however often this is called.
    """
    key = network.operator.key.public_key()
    transaction = TopicCreateTransaction(memo=memo, admin_key=key, submit_key=key)
    return _carry_out(network, transaction, CREATE_TOPIC, transaction_id)


def hand_over(network: Network, topic: str, key: PrivateKey, *, keeps_writing: bool) -> None:
    """Make another key the admin key of a topic of ours; that key signs too, as the network asks.

    With `keeps_writing` either of the two keys may write from then on, else the new one alone.
    """
    theirs = key.public_key()
    submit = KeyList([theirs, network.operator.key.public_key()], threshold=1) if keeps_writing else theirs
    change = TopicUpdateTransaction(topic_id=TopicId.from_string(topic), admin_key=theirs, submit_key=submit)
    _carry_out(network, change, UPDATE_TOPIC + SIGNATURE, keys=(key,))


def _carry_out(
    network: Network,
    transaction: Transaction,
    price: int,
    transaction_id: str = "",
    keys: tuple[PrivateKey, ...] = (),
) -> str:
    """Send a transaction until its outcome is known; return what it created."""
    name = transaction_id or network.ids.draw()
    limit = network.mirror.exchange_rate().tinybars(price * _MARGIN)
    account, where = network.operator.account, network.addresses
    try:
        network.send(transaction, name, Terms(limit, keys=keys))
    except NetworkAway as away:
        if away.code != "submission_in_doubt":
            raise
    except NetworkRefused:
        # A node refuses an id that is too old, whatever became of it when it was sent before.
        if not transaction_id or network.resolve_by_mirror(name).state == "pending":
            raise
    found = network.wait(name)
    if found.state == "recorded":
        return found.entity
    if found.state == "failed":
        raise refusal(found.status, account, where.name)
    if found.state == "lost":
        raise NetworkAway(f"{name} did not reach consensus; try again", code="transaction_lost")
    text = f"what became of {name} is not known yet; look for it on {where.rest}"
    raise NetworkAway(text, code="submission_in_doubt")


class HederaTopics:
    """The topics of a network as an operator uses them (`redkey.services.ordered.hosting.Topics`)."""

    def __init__(self, network: Network, terms: FeeTerms, submit_keys: Callable[[str], tuple[PrivateKey, ...]]) -> None:
        """`submit_keys` are the keys at hand for a topic that somebody else owns."""
        self._network, self._terms, self._submit_keys = network, terms, submit_keys
        self.name, self.account = network.addresses.name, network.operator.account

    def open(self, topic: str) -> HederaTopic:
        """Return a topic to write to and to read."""
        prices = TopicPrices(self._network, topic, self._terms, self._submit_keys(topic))
        return HederaTopic(self._network, topic, prices)

    def draw(self) -> str:
        """Return a new transaction id."""
        return self._network.ids.draw()

    def create(self, memo: str, transaction_id: str) -> str:
        """Create a topic that only this account may write to."""
        return create_topic(self._network, memo, transaction_id)

    def describe(self, topic: str) -> TopicFacts | None:
        """Return a topic; None if it is not on this network, or was deleted."""
        found = self._network.mirror.topic(topic)
        if found is None or found.deleted:
            return None
        admin = found.admin_key.key if found.admin_key is not None else ""
        ours = self._network.operator.key.public_key().to_string_raw()
        keys = (self._network.operator.key, *self._submit_keys(topic))
        return TopicFacts(found.memo, admin == ours, may_write(found, keys), admin)

    def account_key(self, account: str) -> str:
        """Return the key of an account in hex; empty if there is no such account."""
        found = self._network.mirror.account(account)
        return found.key.key if found is not None and found.key is not None and not found.deleted else ""

    def allow(self, topic: str, accounts: Sequence[str], transaction_id: str) -> None:
        """Let these accounts write to a topic of ours beside this server's own, and no others."""
        keys = [self._network.operator.key.public_key()]
        for account in accounts:
            text = self.account_key(account)
            if not text:
                raise refusal("PAYER_ACCOUNT_NOT_FOUND", account, self.name)
            keys.append(PublicKey.from_string(text))
        submit = KeyList(keys, threshold=1) if accounts else keys[0]
        change = TopicUpdateTransaction(topic_id=TopicId.from_string(topic), submit_key=submit)
        _carry_out(self._network, change, UPDATE_TOPIC, transaction_id)

    def last_change(self, topic: str) -> str:
        """Return the last transaction by which this account changed a topic; empty if there is none."""
        mirror = self._network.mirror
        known = mirror.topic(topic)
        if known is None:
            return ""
        changes = mirror.transactions(self.account, "CONSENSUSUPDATETOPIC", known.created_at, newest_first=True)
        last = next((one.transaction_id for one in changes if one.entity_id == topic), "")
        return last if last.startswith(f"{self.account}-") else ""

    def delete(self, topic: str, transaction_id: str) -> None:
        """Delete a topic of ours; nobody writes to it after that."""
        transaction = TopicDeleteTransaction(TopicId.from_string(topic))
        _carry_out(self._network, transaction, DELETE_TOPIC, transaction_id)

    def close(self) -> None:
        """Close all connections."""
        self._network.close()
