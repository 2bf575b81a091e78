"""Send transactions to a Hedera network, each at most once, and find out what became of them.

Transactions are built and signed by the SDK and sent by its raw stubs. The SDK's own client is not used to send: after
a lost answer it reports "All nodes are unhealthy" for a message that was recorded, it draws the same transaction id
twice, and its receipt queries back off to seconds. Here the caller draws the transaction id (`TransactionIds`), keeps
it, and asks `resolve` about it until the answer is final.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, Literal

import grpc
import msgspec
from hiero_sdk_python.account.account_id import AccountId
from hiero_sdk_python.channels import _Channel
from hiero_sdk_python.consensus.topic_id import TopicId
from hiero_sdk_python.consensus.topic_message_submit_transaction import TopicMessageSubmitTransaction
from hiero_sdk_python.crypto.private_key import PrivateKey
from hiero_sdk_python.hapi.services.query_pb2 import Query
from hiero_sdk_python.hapi.services.response_code_pb2 import ResponseCodeEnum
from hiero_sdk_python.hbar import Hbar
from hiero_sdk_python.tokens.custom_fixed_fee import CustomFixedFee
from hiero_sdk_python.transaction.custom_fee_limit import CustomFeeLimit
from hiero_sdk_python.transaction.transaction import Transaction
from hiero_sdk_python.transaction.transaction_id import TransactionId

from redkey.errors import ConfigRefused, NetworkAway, NetworkRefused
from redkey.hedera.addresses import Addresses
from redkey.hedera.ids import TransactionIds, valid_start
from redkey.hedera.mirror import Mirror
from redkey.hedera.refusals import refusal
from redkey.wire.times import NANOSECONDS

# How long a transaction may wait for consensus after its valid start.
VALID_SECONDS = 120
# After the end of validity the mirror must be this much further before a missing transaction is given up.
MARGIN_SECONDS = 10
CALL_SECONDS = 10.0
_RETRY = frozenset({"BUSY", "PLATFORM_NOT_ACTIVE", "PLATFORM_TRANSACTION_NOT_CREATED"})
_TLS_PORTS = ("443", "50212")


class Operator(msgspec.Struct, frozen=True):
    """The account that pays, and its key; the key is never shown."""

    account: str
    key: PrivateKey

    def __repr__(self) -> str:
        """Without the key: this may end in a log."""
        return f"Operator({self.account})"


class Terms(msgspec.Struct, frozen=True):
    """What a transaction may cost, in tinybars, and the keys that sign it beside the operator's."""

    max_fee: int
    max_custom_fee: int = 0
    keys: tuple[PrivateKey, ...] = ()


class Resolution(msgspec.Struct, frozen=True):
    """What became of a transaction.

    `recorded`: it succeeded. `failed`: it reached consensus and `status` says why it changed nothing. `lost`: it never
    reached consensus and cannot any more. `pending`: none of these is certain yet. The fee and the time come from the
    mirror and may be missing from a receipt.
    """

    state: Literal["recorded", "failed", "lost", "pending"]
    status: str = ""
    sequence: int = 0
    running_hash: bytes = b""
    entity: str = ""
    timestamp: int = 0
    fee: int | None = None


class Network:
    """A Hedera network as one operator uses it. Safe to use from several threads."""

    def __init__(self, addresses: Addresses, operator: Operator, *, clock: Callable[[], int] = time.time_ns) -> None:
        for address in addresses.nodes:
            # The SDK chooses TLS by the port alone, whatever it was asked for.
            if address.rpartition(":")[2] in _TLS_PORTS:
                text = f"node {address}: the ports {' and '.join(_TLS_PORTS)} mean TLS, which nodes are not called by"
                raise ConfigRefused(f"{text}; use the plain port (50211): transactions are signed, answers are checked")
        self.addresses, self.operator = addresses, operator
        self.mirror = Mirror(addresses.rest)
        self.ids = TransactionIds(operator.account, clock)
        self._channels: dict[str, grpc.Channel] = {}
        self._lock = Lock()

    def close(self) -> None:
        """Close all connections."""
        self.mirror.close()
        with self._lock:
            for channel in self._channels.values():
                channel.close()
            self._channels.clear()

    def submit(self, topic: str, message: bytes, transaction_id: str, terms: Terms) -> None:
        """Send a message to a topic.

        Returns once a node has taken the message, or has it already: `resolve` says what became of it. NetworkRefused
        if it was not recorded and will not be; NetworkAway if that is not known (`submission_in_doubt`).
        """
        self.send(self._message(topic, message, terms), transaction_id, terms)

    def estimate(self, topic: str, size: int, terms: Terms) -> int | None:
        """Return what a message of this size would cost in tinycents, by the mirror; None if it has no estimates.

        The mirror gets a transaction as it would be sent, with an id that is never used.
        """
        transaction = self._message(topic, b"0" * size, terms)
        [request, *_] = self._signed(transaction, self.ids.draw(), terms).values()
        return self.mirror.estimate(request.SerializeToString())

    def _message(self, topic: str, message: bytes, terms: Terms) -> Transaction:
        transaction = TopicMessageSubmitTransaction(TopicId.from_string(topic), message)
        if terms.max_custom_fee:
            fee = CustomFixedFee().set_hbar_amount(Hbar.from_tinybars(terms.max_custom_fee))
            limit = CustomFeeLimit().set_payer_id(AccountId.from_string(self.operator.account)).add_custom_fee(fee)
            transaction.set_custom_fee_limits([limit])
        return transaction

    def send(self, transaction: Transaction, transaction_id: str, terms: Terms) -> None:
        """Send any transaction of the SDK under an id of ours; ends as `submit` does."""
        requests = self._signed(transaction, transaction_id, terms)
        broken: grpc.RpcError | None = None
        busy = ""
        for address, request in requests.items():
            channel = _Channel(self._channel(address))
            try:
                response = transaction._get_method(channel).transaction(request, timeout=CALL_SECONDS)
            except grpc.RpcError as error:
                # The node may have recorded it. The next node gets the same id, so it cannot be recorded twice.
                broken = error
                self._drop(address)
                continue
            status = ResponseCodeEnum.Name(response.nodeTransactionPrecheckCode)
            if status in ("OK", "DUPLICATE_TRANSACTION"):
                return
            if status in _RETRY:
                busy = status
                continue
            if broken is None:
                raise refusal(status, self.operator.account, self.addresses.name)
        if broken is not None:
            text = f"no node of {self.addresses.name} answered ({_reason(broken)}); {transaction_id} may be recorded"
            raise NetworkAway(text, code="submission_in_doubt") from broken
        raise NetworkAway(f"every node of {self.addresses.name} answers {busy}; try again later", code="network_busy")

    def resolve(self, transaction_id: str) -> Resolution:
        """Find out what became of a transaction: by its receipt, else by the mirror."""
        found = self._receipt(transaction_id)
        return found if found is not None else self.resolve_by_mirror(transaction_id)

    def resolve_by_mirror(self, transaction_id: str) -> Resolution:
        """Find out what became of a transaction by the mirror alone."""
        end = valid_start(transaction_id) + (VALID_SECONDS + MARGIN_SECONDS) * NANOSECONDS
        # First how far the mirror is, then whether it has the transaction: what it gets in between does no harm.
        is_final = self.mirror.complete_until() > end
        shown = self.mirror.transaction(transaction_id)
        if shown is None:
            return Resolution("lost" if is_final else "pending")
        fee = shown.paid_by(self.operator.account)
        state: Literal["recorded", "failed"] = "recorded" if shown.result == "SUCCESS" else "failed"
        return Resolution(state, shown.result, entity=shown.entity_id or "", timestamp=shown.timestamp, fee=fee)

    def wait(
        self, transaction_id: str, *, seconds: float = 60, sleep: Callable[[float], None] = time.sleep
    ) -> Resolution:
        """Ask about a transaction until the answer is final, or `seconds` have passed: then it is `pending`."""
        deadline, pause = time.monotonic() + seconds, 0.05
        while True:
            try:
                found = self.resolve(transaction_id)
            except NetworkAway:
                found = Resolution("pending")
            if found.state != "pending" or time.monotonic() >= deadline:
                return found
            sleep(min(pause, max(0.0, deadline - time.monotonic())))
            pause = min(0.5, pause * 2)

    def _signed(self, transaction: Transaction, transaction_id: str, terms: Terms) -> dict[str, Any]:
        account, seconds, nanos = transaction_id.rsplit("-", 2)
        if account != self.operator.account:
            text = f"{transaction_id} is not an id of the operator {self.operator.account}"
            raise NetworkRefused(text, code="payer_unknown")
        transaction.set_transaction_id(TransactionId.from_string(f"{account}@{seconds}.{int(nanos)}"))
        transaction.transaction_valid_duration = VALID_SECONDS
        transaction.transaction_fee = terms.max_fee
        nodes = {address: AccountId.from_string(node) for address, node in self.addresses.nodes.items()}
        transaction.set_node_account_ids(list(nodes.values()))
        transaction.freeze()
        for key in (self.operator.key, *terms.keys):
            transaction.sign(key)
        requests = {}
        for place, address in enumerate(nodes):
            transaction._node_account_ids.set_index(place)
            requests[address] = transaction._to_proto()
        return requests

    def _receipt(self, transaction_id: str) -> Resolution | None:
        account, seconds, nanos = transaction_id.rsplit("-", 2)
        query = Query()
        name = TransactionId.from_string(f"{account}@{seconds}.{int(nanos)}")._to_proto()
        query.transactionGetReceipt.transactionID.CopyFrom(name)
        for address in self.addresses.nodes:
            channel = _Channel(self._channel(address))
            try:
                answer = channel.crypto.getTransactionReceipts(query, timeout=CALL_SECONDS).transactionGetReceipt
            except grpc.RpcError:
                self._drop(address)
                continue
            if answer.header.nodeTransactionPrecheckCode != ResponseCodeEnum.OK:
                continue
            receipt = answer.receipt
            status = ResponseCodeEnum.Name(receipt.status)
            if status == "UNKNOWN":
                return Resolution("pending")
            if status == "SUCCESS":
                created = _created(receipt)
                return Resolution("recorded", status, receipt.topicSequenceNumber, receipt.topicRunningHash, created)
            return Resolution("failed", status)
        return None

    def _channel(self, address: str) -> grpc.Channel:
        with self._lock:
            if address not in self._channels:
                self._channels[address] = grpc.insecure_channel(address)
            return self._channels[address]

    def _drop(self, address: str) -> None:
        """Forget a broken connection; the next call opens a new one.

        Other threads may be in the middle of a call on it, which would fail if it were closed here: the last one that
        uses it lets it go.
        """
        with self._lock:
            self._channels.pop(address, None)


def _created(receipt: Any) -> str:
    """Return the id of the topic or account that a transaction created."""
    if receipt.HasField("topicID"):
        return str(TopicId._from_proto(receipt.topicID))
    return str(AccountId._from_proto(receipt.accountID)) if receipt.HasField("accountID") else ""


def _reason(error: grpc.RpcError) -> str:
    return f"{error.code().name}: {error.details()}" if isinstance(error, grpc.Call) else repr(error)
