"""The gRPC services of a stand-in network: consensus and crypto of its nodes, and the mirror's stream of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
from hiero_sdk_python.hapi.mirror.consensus_service_pb2 import ConsensusTopicQuery, ConsensusTopicResponse
from hiero_sdk_python.hapi.mirror.consensus_service_pb2_grpc import ConsensusServiceServicer as MirrorServicer
from hiero_sdk_python.hapi.services.basic_types_pb2 import AccountAmount, TransferList
from hiero_sdk_python.hapi.services.consensus_service_pb2_grpc import ConsensusServiceServicer
from hiero_sdk_python.hapi.services.crypto_service_pb2_grpc import CryptoServiceServicer
from hiero_sdk_python.hapi.services.query_header_pb2 import COST_ANSWER
from hiero_sdk_python.hapi.services.query_pb2 import Query
from hiero_sdk_python.hapi.services.response_code_pb2 import ResponseCodeEnum
from hiero_sdk_python.hapi.services.response_pb2 import Response
from hiero_sdk_python.hapi.services.transaction_pb2 import Transaction
from hiero_sdk_python.hapi.services.transaction_receipt_pb2 import TransactionReceipt
from hiero_sdk_python.hapi.services.transaction_response_pb2 import TransactionResponse

from redkey.hedera.standin.state import (
    Executed,
    Message,
    NetworkState,
    account_id,
    id_of,
    nanoseconds_of,
    timestamp_of,
    topic_id,
)
from redkey.hedera.standin.transactions import settled, take
from redkey.ledger.fees import QUERY
from redkey.ledger.running_hash import VERSION
from redkey.wire.times import NANOSECONDS

# How long a stream waits before it looks again for messages that become visible by time.
_LOOK_SECONDS = 0.05


class ConsensusNode(ConsensusServiceServicer, CryptoServiceServicer):  # type: ignore[misc]
    """One consensus node: takes transactions and answers queries about them."""

    def __init__(self, state: NetworkState, node: str) -> None:
        self._state, self._node = state, node

    def _take(self, request: Transaction, context: grpc.ServicerContext) -> TransactionResponse:
        faults = self._state.faults
        if faults.happens("lose_request"):
            context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
        if faults.happens("busy"):
            return TransactionResponse(nodeTransactionPrecheckCode=ResponseCodeEnum.BUSY)
        with self._state.changed:
            code = take(self._state, request, self._node)
        if code == "OK" and faults.happens("lose_answer"):
            context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
        if code == "OK" and faults.happens("duplicate"):
            code = "DUPLICATE_TRANSACTION"
        return TransactionResponse(nodeTransactionPrecheckCode=ResponseCodeEnum.Value(code))

    createTopic = updateTopic = deleteTopic = submitMessage = createAccount = cryptoTransfer = _take  # noqa: N815

    def getTransactionReceipts(self, request: Query, context: grpc.ServicerContext) -> Response:  # noqa: N802
        """Return the receipt of a transaction: UNKNOWN until it is settled, RECEIPT_NOT_FOUND after three minutes."""
        if self._state.faults.happens("lose_receipt"):
            context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
        response = Response()
        answer = response.transactionGetReceipt
        with self._state.changed:
            name = request.transactionGetReceipt.transactionID.SerializeToString(deterministic=True)
            executed = settled(self._state, name)
            if executed is None:
                answer.header.nodeTransactionPrecheckCode = ResponseCodeEnum.RECEIPT_NOT_FOUND
                return response
            answer.header.nodeTransactionPrecheckCode = ResponseCodeEnum.OK
            if executed.settled_at > self._state.clock():
                answer.receipt.status = ResponseCodeEnum.UNKNOWN
            else:
                answer.receipt.CopyFrom(self._receipt(executed))
        return response

    def getTxRecordByTxID(self, request: Query, context: grpc.ServicerContext) -> Response:  # noqa: N802
        """Return the record of a transaction: the receipt, the fee and the transfers."""
        response = Response()
        query, answer = request.transactionGetRecord, response.transactionGetRecord
        if not self._is_paid(query.header, answer.header):
            return response
        with self._state.changed:
            executed = settled(self._state, query.transactionID.SerializeToString(deterministic=True))
            if executed is None or executed.settled_at > self._state.clock():
                answer.header.nodeTransactionPrecheckCode = ResponseCodeEnum.RECORD_NOT_FOUND
                return response
            record = answer.transactionRecord
            record.receipt.CopyFrom(self._receipt(executed))
            record.transactionHash, record.memo = executed.hash, executed.body.memo
            record.consensusTimestamp.CopyFrom(timestamp_of(executed.timestamp))
            record.transactionID.CopyFrom(executed.transaction_id)
            record.transactionFee = executed.fee
            record.transferList.CopyFrom(transfer_list(executed))
        return response

    def getTopicInfo(self, request: Query, context: grpc.ServicerContext) -> Response:  # noqa: N802
        """Return what a topic is: its keys, memo, sequence number and running hash."""
        response = Response()
        query, answer = request.consensusGetTopicInfo, response.consensusGetTopicInfo
        if not self._is_paid(query.header, answer.header):
            return response
        with self._state.changed:
            topic = self._state.topics.get(id_of(query.topicID))
            if topic is None or topic.is_deleted:
                answer.header.nodeTransactionPrecheckCode = ResponseCodeEnum.INVALID_TOPIC_ID
                return response
            answer.topicID.CopyFrom(query.topicID)
            info = answer.topicInfo
            info.memo, info.runningHash, info.sequenceNumber = topic.memo, topic.head.running_hash, topic.head.sequence
            info.autoRenewPeriod.seconds = topic.auto_renew_seconds
            expires = topic.created_at + topic.auto_renew_seconds * NANOSECONDS
            info.expirationTime.CopyFrom(timestamp_of(expires))
            for field, key in (
                ("adminKey", topic.admin_key),
                ("submitKey", topic.submit_key),
                ("fee_schedule_key", topic.fee_schedule_key),
            ):
                if key is not None:
                    getattr(info, field).CopyFrom(key)
            if topic.auto_renew_account is not None:
                info.autoRenewAccount.CopyFrom(account_id(topic.auto_renew_account))
            info.custom_fees.extend(topic.custom_fees)
            info.fee_exempt_key_list.extend(topic.fee_exempt_keys)
        return response

    def cryptoGetBalance(self, request: Query, context: grpc.ServicerContext) -> Response:  # noqa: N802
        """Return the balance of an account; this query is free."""
        response = Response()
        query, answer = request.cryptogetAccountBalance, response.cryptogetAccountBalance
        with self._state.changed:
            account = self._state.accounts.get(id_of(query.accountID))
            if account is None:
                answer.header.nodeTransactionPrecheckCode = ResponseCodeEnum.INVALID_ACCOUNT_ID
                return response
            answer.accountID.CopyFrom(query.accountID)
            answer.balance = account.balance
        return response

    def _is_paid(self, header: Any, answer: Any) -> bool:
        """Answer with the cost, or take the payment of a query; False when there is nothing more to answer."""
        answer.responseType = header.responseType
        answer.cost = self._state.rate.tinybars(QUERY)
        answer.nodeTransactionPrecheckCode = ResponseCodeEnum.OK
        if header.responseType == COST_ANSWER:
            return False
        with self._state.changed:
            code = take(self._state, header.payment, self._node)
        answer.nodeTransactionPrecheckCode = ResponseCodeEnum.Value(code)
        return code == "OK"

    def _receipt(self, executed: Executed) -> TransactionReceipt:
        receipt = TransactionReceipt(status=ResponseCodeEnum.Value(executed.status))
        for rate in (receipt.exchangeRate.currentRate, receipt.exchangeRate.nextRate):
            rate.hbarEquiv, rate.centEquiv = self._state.rate.hbars, self._state.rate.cents
            rate.expirationTime.seconds = self._state.rate.expires
        kind = executed.body.WhichOneof("data")
        if executed.status == "SUCCESS" and executed.entity is not None and kind == "consensusCreateTopic":
            receipt.topicID.CopyFrom(topic_id(executed.entity))
        if executed.status == "SUCCESS" and executed.entity is not None and kind == "cryptoCreateAccount":
            receipt.accountID.CopyFrom(account_id(executed.entity))
        if executed.message is not None:
            receipt.topicSequenceNumber = executed.message.sequence
            receipt.topicRunningHash = executed.message.running_hash
            receipt.topicRunningHashVersion = VERSION
        return receipt


def transfer_list(executed: Executed) -> TransferList:
    """Write what a transaction moved."""
    amounts = [AccountAmount(accountID=account_id(one), amount=n) for one, n in sorted(executed.transfers.items()) if n]
    return TransferList(accountAmounts=amounts)


class MirrorStream(MirrorServicer):  # type: ignore[misc]
    """The mirror's stream of messages; its rows name no payer."""

    def __init__(self, state: NetworkState) -> None:
        self._state = state

    def subscribeTopic(  # noqa: N802
        self, request: ConsensusTopicQuery, context: grpc.ServicerContext
    ) -> Iterator[ConsensusTopicResponse]:
        """Yield messages from a time on, until the caller or the limit ends it."""
        state, name = self._state, id_of(request.topicID)
        after = nanoseconds_of(request.consensusStartTime) - 1
        end = nanoseconds_of(request.consensusEndTime) if request.HasField("consensusEndTime") else None
        sent = 0
        while context.is_active():
            with state.changed:
                if state.is_closed:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "the mirror stops")
                if name not in state.topics:
                    context.abort(grpc.StatusCode.NOT_FOUND, f"Topic {name} does not exist")
                fresh = state.shown(name, after)
                if not fresh:
                    state.changed.wait(_LOOK_SECONDS)
            for message in fresh:
                if end is not None and message.record.timestamp >= end:
                    return
                if state.faults.happens("cut_stream"):
                    context.abort(grpc.StatusCode.UNAVAILABLE, "the stream was cut")
                after = message.record.timestamp
                if not state.faults.happens("skip"):
                    yield _streamed(state, message)
                    sent += 1
                if state.faults.happens("repeat"):
                    yield _streamed(state, message)
                if request.limit and sent >= request.limit:
                    return


def _streamed(state: NetworkState, message: Message) -> ConsensusTopicResponse:
    record = message.record
    response = ConsensusTopicResponse(
        consensusTimestamp=timestamp_of(record.timestamp),
        message=changed(record.wire) if state.faults.happens("change_byte") else record.wire,
        runningHash=record.running_hash,
        sequenceNumber=record.sequence,
        runningHashVersion=VERSION,
    )
    if message.chunk is not None:
        response.chunkInfo.CopyFrom(message.chunk)
    return response


def changed(data: bytes) -> bytes:
    """Return a message with one bit changed."""
    return bytes((data[0] ^ 1,)) + data[1:]
