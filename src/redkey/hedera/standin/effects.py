"""What each type of transaction does to a stand-in network, or why it fails after consensus."""

from __future__ import annotations

from collections.abc import Callable

from hiero_sdk_python.hapi.services.basic_types_pb2 import Key

from redkey.hedera.standin.signatures import Refused, Signed, is_empty
from redkey.hedera.standin.state import Account, Executed, NetworkState, Shown, Topic, id_of
from redkey.ledger.record import MESSAGE_LIMIT

MEMO_BYTES = 100
_RENEWAL_SECONDS = (6_999_999, 8_000_001)


def _living_topic(state: NetworkState, topic_id: str) -> Topic:
    topic = state.topics.get(topic_id)
    if topic is None or topic.is_deleted:
        raise Refused("INVALID_TOPIC_ID")
    return topic


def _submit(state: NetworkState, signed: Signed, executed: Executed) -> None:
    message = signed.body.consensusSubmitMessage
    topic_id = executed.entity = id_of(message.topicID)
    topic = _living_topic(state, topic_id)
    if len(message.message) > MESSAGE_LIMIT:
        raise Refused("MESSAGE_SIZE_TOO_LARGE")
    chunk = message.chunkInfo if message.HasField("chunkInfo") else None
    if chunk is not None:
        if not 1 <= chunk.number <= chunk.total:
            raise Refused("INVALID_CHUNK_NUMBER")
        first = chunk.initialTransactionID
        if id_of(first.accountID) != signed.payer or (chunk.number == 1 and first != signed.body.transactionID):
            raise Refused("INVALID_CHUNK_TRANSACTION_ID")
    if not signed.satisfies(topic.submit_key):
        raise Refused("INVALID_SIGNATURE")
    _pay_custom_fees(state, signed, executed, topic)
    shown = Shown(executed.mirrored_at, chunk)
    executed.message = state.append(topic_id, signed.payer, executed.timestamp, message.message, shown)


def _pay_custom_fees(state: NetworkState, signed: Signed, executed: Executed, topic: Topic) -> None:
    """Charge the fixed HBAR fees of a topic (HIP-991) within the limit of the transaction."""
    if not topic.custom_fees or any(signed.satisfies(key) for key in topic.fee_exempt_keys):
        return
    own = [fee for fee in topic.custom_fees if id_of(fee.fee_collector_account_id) != signed.payer]
    due = sum(fee.fixed_fee.amount for fee in own)
    limits = [limit for limit in signed.body.max_custom_fees if id_of(limit.account_id) == signed.payer]
    if due and not limits:
        raise Refused("NO_VALID_MAX_CUSTOM_FEE")
    allowed = sum(fee.amount for limit in limits for fee in limit.fees if not fee.HasField("denominating_token_id"))
    if due > allowed:
        raise Refused("MAX_CUSTOM_FEE_LIMIT_EXCEEDED")
    if state.accounts[signed.payer].balance < due:
        raise Refused("INSUFFICIENT_PAYER_BALANCE_FOR_CUSTOM_FEE")
    for fee in own:
        amounts = {signed.payer: -fee.fixed_fee.amount, id_of(fee.fee_collector_account_id): fee.fixed_fee.amount}
        state.transfer(amounts)
        for account, amount in amounts.items():
            executed.transfers[account] = executed.transfers.get(account, 0) + amount
        executed.custom_fees.append(fee)


def _check_memo(memo: str) -> None:
    if len(memo.encode()) > MEMO_BYTES:
        raise Refused("MEMO_TOO_LONG")
    if "\0" in memo:
        raise Refused("INVALID_ZERO_BYTE_IN_STRING")


def _create_topic(state: NetworkState, signed: Signed, executed: Executed) -> None:
    new = signed.body.consensusCreateTopic
    _check_memo(new.memo)
    if not _RENEWAL_SECONDS[0] <= new.autoRenewPeriod.seconds <= _RENEWAL_SECONDS[1]:
        raise Refused("AUTORENEW_DURATION_NOT_IN_RANGE")
    topic = Topic(new.memo, executed.timestamp, auto_renew_seconds=new.autoRenewPeriod.seconds)
    topic.admin_key, topic.submit_key = _key(new, "adminKey"), _key(new, "submitKey")
    topic.fee_schedule_key = _key(new, "fee_schedule_key")
    topic.fee_exempt_keys, topic.custom_fees = tuple(new.fee_exempt_key_list), tuple(new.custom_fees)
    if new.HasField("autoRenewAccount"):
        topic.auto_renew_account = id_of(new.autoRenewAccount)
        _check_renewal(state, signed, topic.auto_renew_account)
    if not signed.satisfies(topic.admin_key):
        raise Refused("INVALID_SIGNATURE")
    for fee in topic.custom_fees:
        if id_of(fee.fee_collector_account_id) not in state.accounts:
            raise Refused("INVALID_CUSTOM_FEE_COLLECTOR")
        if fee.fixed_fee.amount <= 0:
            raise Refused("CUSTOM_FEE_MUST_BE_POSITIVE")
    executed.entity = state.next_entity()
    state.topics[executed.entity] = topic


def _check_renewal(state: NetworkState, signed: Signed, account_id: str) -> None:
    account = state.accounts.get(account_id)
    if account is None:
        raise Refused("INVALID_AUTORENEW_ACCOUNT")
    if not signed.satisfies(account.key):
        raise Refused("INVALID_SIGNATURE")


def _update_topic(state: NetworkState, signed: Signed, executed: Executed) -> None:
    change = signed.body.consensusUpdateTopic
    executed.entity = id_of(change.topicID)
    topic = _living_topic(state, executed.entity)
    if topic.admin_key is None:
        raise Refused("UNAUTHORIZED")
    new_admin = _key(change, "adminKey") if change.HasField("adminKey") else topic.admin_key
    if not signed.satisfies(topic.admin_key) or not signed.satisfies(new_admin):
        raise Refused("INVALID_SIGNATURE")
    if change.HasField("memo"):
        _check_memo(change.memo.value)
        topic.memo = change.memo.value
    topic.admin_key = new_admin
    if change.HasField("submitKey"):
        topic.submit_key = _key(change, "submitKey")
    if change.HasField("fee_schedule_key"):
        topic.fee_schedule_key = _key(change, "fee_schedule_key")
    if change.HasField("fee_exempt_key_list"):
        topic.fee_exempt_keys = tuple(change.fee_exempt_key_list.keys)
    if change.HasField("custom_fees"):
        topic.custom_fees = tuple(change.custom_fees.fees)
    if change.HasField("autoRenewPeriod"):
        topic.auto_renew_seconds = change.autoRenewPeriod.seconds


def _delete_topic(state: NetworkState, signed: Signed, executed: Executed) -> None:
    executed.entity = id_of(signed.body.consensusDeleteTopic.topicID)
    topic = _living_topic(state, executed.entity)
    if topic.admin_key is None:
        raise Refused("UNAUTHORIZED")
    if not signed.satisfies(topic.admin_key):
        raise Refused("INVALID_SIGNATURE")
    topic.is_deleted = True


def _create_account(state: NetworkState, signed: Signed, executed: Executed) -> None:
    new = signed.body.cryptoCreateAccount
    if is_empty(new.key):
        raise Refused("KEY_REQUIRED")
    if state.accounts[signed.payer].balance < new.initialBalance:
        raise Refused("INSUFFICIENT_PAYER_BALANCE")
    executed.entity = state.next_entity()
    state.accounts[executed.entity] = Account(new.key, memo=new.memo)
    _move(state, executed, {signed.payer: -int(new.initialBalance), executed.entity: int(new.initialBalance)})


def _transfer(state: NetworkState, signed: Signed, executed: Executed) -> None:
    amounts: dict[str, int] = {}
    for one in signed.body.cryptoTransfer.transfers.accountAmounts:
        amounts[id_of(one.accountID)] = amounts.get(id_of(one.accountID), 0) + one.amount
    if sum(amounts.values()):
        raise Refused("INVALID_ACCOUNT_AMOUNTS")
    for account_id, amount in amounts.items():
        account = state.accounts.get(account_id)
        if account is None:
            raise Refused("INVALID_ACCOUNT_ID")
        if amount < 0 and not (account.key and signed.satisfies(account.key)):
            raise Refused("INVALID_SIGNATURE")
        if account.balance + amount < 0:
            raise Refused("INSUFFICIENT_ACCOUNT_BALANCE")
    _move(state, executed, amounts)


def _move(state: NetworkState, executed: Executed, amounts: dict[str, int]) -> None:
    state.transfer(amounts)
    for account, amount in amounts.items():
        executed.transfers[account] = executed.transfers.get(account, 0) + amount


def _key(body: object, field: str) -> Key | None:
    key = getattr(body, field)
    return None if is_empty(key) else key


HANDLERS: dict[str, Callable[[NetworkState, Signed, Executed], None]] = {
    "consensusCreateTopic": _create_topic,
    "consensusUpdateTopic": _update_topic,
    "consensusDeleteTopic": _delete_topic,
    "consensusSubmitMessage": _submit,
    "cryptoCreateAccount": _create_account,
    "cryptoTransfer": _transfer,
}
