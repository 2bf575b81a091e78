"""How a stand-in node takes a transaction: the checks before consensus, the fee, and its record.

The precheck refuses without a record and without a fee. After it the transaction is recorded and paid for, also
when it fails: its receipt says why, and it changes nothing else.
"""

from __future__ import annotations

from hiero_sdk_python.hapi.services.transaction_pb2 import Transaction

from redkey.hedera.standin import prices
from redkey.hedera.standin.effects import HANDLERS, MEMO_BYTES
from redkey.hedera.standin.signatures import Refused, Signed
from redkey.hedera.standin.state import FEE_COLLECTOR, RECEIPT_SECONDS, Executed, NetworkState, id_of, nanoseconds_of
from redkey.wire.times import NANOSECONDS

_SHORTEST, _LONGEST = 15, 180


def take(state: NetworkState, transaction: Transaction, node: str) -> str:
    """Check a transaction and record it; return the precheck code. Call it while holding `state.changed`."""
    try:
        signed = Signed(transaction)
        price = _precheck(state, signed, node)
    except Refused as refused:
        return refused.status
    if state.faults.happens("no_balance"):
        return "INSUFFICIENT_PAYER_BALANCE"
    now = state.clock()
    delay = int(state.faults.delay_seconds * NANOSECONDS) if state.faults.happens("delay") else 0
    executed = Executed(
        transaction_id=signed.body.transactionID,
        body=signed.body,
        node=node,
        hash=signed.hash,
        timestamp=state.next_timestamp(),
        settled_at=now + delay,
        mirrored_at=state.mirror_time(now + delay),
        fee=price,
        transfers={signed.payer: -price, node: price // 10, FEE_COLLECTOR: price - price // 10},
    )
    state.transfer(executed.transfers)
    try:
        HANDLERS[signed.kind](state, signed, executed)
    except Refused as refused:
        executed.status = refused.status
    state.note(executed)
    return "OK"


def _precheck(state: NetworkState, signed: Signed, node: str) -> int:
    """Return the price of a transaction that may go to consensus; raise Refused for others."""
    body, start = signed.body, nanoseconds_of(signed.body.transactionID.transactionValidStart)
    if signed.kind not in HANDLERS:
        raise Refused("INVALID_TRANSACTION_BODY" if not signed.kind else "NOT_SUPPORTED")
    if not body.HasField("transactionID") or not start:
        raise Refused("INVALID_TRANSACTION_ID")
    if id_of(body.nodeAccountID) != node:
        raise Refused("INVALID_NODE_ACCOUNT")
    duration, now = int(body.transactionValidDuration.seconds), state.clock()
    if not _SHORTEST <= duration <= _LONGEST:
        raise Refused("INVALID_TRANSACTION_DURATION")
    if start > now:
        raise Refused("INVALID_TRANSACTION_START")
    if start + duration * NANOSECONDS < now:
        raise Refused("TRANSACTION_EXPIRED")
    if len(body.memo.encode()) > MEMO_BYTES:
        raise Refused("MEMO_TOO_LONG")
    if body.max_custom_fees and signed.kind != "consensusSubmitMessage":
        raise Refused("MAX_CUSTOM_FEES_IS_NOT_SUPPORTED")
    if body.transactionID.SerializeToString(deterministic=True) in state.executed:
        raise Refused("DUPLICATE_TRANSACTION")
    account = state.accounts.get(signed.payer)
    if account is None or account.key is None:
        raise Refused("PAYER_ACCOUNT_NOT_FOUND")
    if not signed.satisfies(account.key):
        raise Refused("INVALID_SIGNATURE")
    if signed.kind == "consensusSubmitMessage" and not body.consensusSubmitMessage.message:
        raise Refused("INVALID_TOPIC_MESSAGE")
    price = state.rate.tinybars(prices.price_of(state, signed.body, len(signed.pairs)))
    if int(body.transactionFee) < price:
        raise Refused("INSUFFICIENT_TX_FEE")
    if account.balance < price:
        raise Refused("INSUFFICIENT_PAYER_BALANCE")
    return price


def settled(state: NetworkState, transaction_id: bytes) -> Executed | None:
    """Return a transaction whose receipt is still kept; None for one that is unknown or too old."""
    executed = state.executed.get(transaction_id)
    if executed is None or executed.settled_at + RECEIPT_SECONDS * NANOSECONDS < state.clock():
        return None
    return executed
