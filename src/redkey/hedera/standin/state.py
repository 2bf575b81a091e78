"""What a stand-in network has recorded: accounts, topics, messages and transactions.

Times are whole nanoseconds. Consensus times are unique and strictly increasing across the network. What is recorded
becomes visible later: to receipts at `settled_at`, to the mirror at `mirrored_at`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from threading import Condition

import msgspec
from hiero_sdk_python.hapi.services.basic_types_pb2 import AccountID, Key, TopicID, TransactionID
from hiero_sdk_python.hapi.services.consensus_submit_message_pb2 import ConsensusMessageChunkInfo
from hiero_sdk_python.hapi.services.custom_fees_pb2 import FixedCustomFee
from hiero_sdk_python.hapi.services.timestamp_pb2 import Timestamp
from hiero_sdk_python.hapi.services.transaction_pb2 import TransactionBody

from redkey.hedera.standin.faults import Faults
from redkey.ledger.fees import HBAR, ExchangeRate
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.running_hash import chained
from redkey.wire.times import NANOSECONDS

TREASURY = "0.0.2"
FIRST_NODE = 3
FEE_COLLECTOR = "0.0.98"
FIRST_ENTITY = 1001
# A receipt is kept for three minutes, as on the real network; the mirror keeps transactions for ever.
RECEIPT_SECONDS = 180
_SUPPLY = 50_000_000_000 * HBAR


class Account(msgspec.Struct):
    """An account: its key, None for those that nothing can sign for, and its balance in tinybars."""

    key: Key | None
    balance: int = 0
    memo: str = ""


class Shown(msgspec.Struct, frozen=True):
    """When the mirror shows a message, and what it says of chunks."""

    mirrored_at: int = 0
    chunk: ConsensusMessageChunkInfo | None = None


SHOWN_AT_ONCE = Shown()


class Message(msgspec.Struct, frozen=True):
    """A message of a topic, and when the mirror shows it."""

    record: Record
    mirrored_at: int
    chunk: ConsensusMessageChunkInfo | None = None


class Topic(msgspec.Struct):
    """A topic with its keys, custom fees and messages."""

    memo: str = ""
    created_at: int = 0
    admin_key: Key | None = None
    submit_key: Key | None = None
    fee_schedule_key: Key | None = None
    fee_exempt_keys: tuple[Key, ...] = ()
    custom_fees: tuple[FixedCustomFee, ...] = ()
    auto_renew_seconds: int = 7_776_000
    auto_renew_account: str | None = None
    is_deleted: bool = False
    head: Head = EMPTY_HEAD
    messages: list[Message] = msgspec.field(default_factory=list)


class Executed(msgspec.Struct):
    """A transaction that reached consensus: its outcome, its fee and what it changed."""

    transaction_id: TransactionID
    body: TransactionBody
    node: str
    hash: bytes
    timestamp: int
    settled_at: int
    mirrored_at: int
    status: str = "SUCCESS"
    fee: int = 0
    transfers: dict[str, int] = msgspec.field(default_factory=dict)
    custom_fees: list[FixedCustomFee] = msgspec.field(default_factory=list)
    entity: str | None = None
    message: Record | None = None


class NetworkState:
    """The state of one network. Hold `changed` while reading or changing it; it is notified of new messages."""

    def __init__(self, clock: Callable[[], int], faults: Faults, rate: ExchangeRate, nodes: int = 1) -> None:
        """`clock` gives the time in nanoseconds."""
        self.clock, self.faults, self.rate = clock, faults, rate
        self.changed = Condition()
        self.accounts: dict[str, Account] = {TREASURY: Account(None, _SUPPLY), FEE_COLLECTOR: Account(None)}
        self.nodes = tuple(f"0.0.{FIRST_NODE + number}" for number in range(nodes))
        self.accounts.update((node, Account(None)) for node in self.nodes)
        self.topics: dict[str, Topic] = {}
        self.executed: dict[bytes, Executed] = {}
        self.history: list[Executed] = []
        # By the start of validity, which is nearly unique: how the mirror finds a transaction by its id.
        self.by_start: dict[int, list[Executed]] = {}
        self.is_closed = False
        # What is charged, in percent of the published prices.
        self.percent = 100
        self._next_entity = FIRST_ENTITY
        self._last_timestamp = 0
        self._last_mirrored = 0

    def next_entity(self) -> str:
        """Return the id of the next account or topic."""
        number, self._next_entity = self._next_entity, self._next_entity + 1
        return f"0.0.{number}"

    def next_timestamp(self) -> int:
        """Return the next consensus time."""
        self._last_timestamp = max(self.clock(), self._last_timestamp + 1)
        return self._last_timestamp

    def open_account(self, key: Key, tinybars: int) -> str:
        """Create an account that the treasury funds."""
        with self.changed:
            account = self.next_entity()
            self.accounts[account] = Account(key)
            self.transfer({TREASURY: -tinybars, account: tinybars})
            return account

    def transfer(self, amounts: dict[str, int]) -> None:
        """Move tinybars; the caller has checked that the amounts cancel out and the balances suffice."""
        for account, amount in amounts.items():
            self.accounts.setdefault(account, Account(None)).balance += amount

    def append(self, topic_id: str, payer: str, timestamp: int, body: bytes, shown: Shown = SHOWN_AT_ONCE) -> Record:
        """Append a message to a topic: the next sequence number, and the running hash over it."""
        topic = self.topics[topic_id]
        record, _ = chained(topic.head, topic_id, payer, timestamp, body)
        topic.head = Head(record.sequence, timestamp, record.running_hash)
        topic.messages.append(Message(record, shown.mirrored_at, shown.chunk))
        self.changed.notify_all()
        return record

    def shown(self, topic_id: str, after: int = -1) -> Sequence[Message]:
        """Return the messages of a topic after a consensus time that the mirror shows now."""
        topic = self.topics.get(topic_id)
        if topic is None:
            return ()
        end = bisect_right(topic.messages, self.clock(), key=lambda message: message.mirrored_at)
        begin = bisect_right(topic.messages, after, key=lambda message: message.record.timestamp)
        return topic.messages[begin:end]

    def shown_history(self) -> Sequence[Executed]:
        """Return the transactions that the mirror shows now."""
        end = bisect_right(self.history, self.clock(), key=lambda one: one.mirrored_at)
        return self.history[:end]

    def mirror_time(self, now: int) -> int:
        """Return when the mirror shows what is recorded now: it falls behind as a whole, and never reorders."""
        lag = int(self.faults.lag_seconds * NANOSECONDS) if self.faults.happens("lag") else 0
        self._last_mirrored = max(self._last_mirrored, now + lag)
        return self._last_mirrored

    def note(self, executed: Executed) -> None:
        """Keep a transaction that reached consensus."""
        self.executed[executed.transaction_id.SerializeToString(deterministic=True)] = executed
        self.history.append(executed)
        start = nanoseconds_of(executed.transaction_id.transactionValidStart)
        self.by_start.setdefault(start, []).append(executed)

    def close(self) -> None:
        """End all streams."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()


def id_of(entity: AccountID | TopicID) -> str:
    """Write an account or topic id as `shard.realm.num`."""
    number = entity.accountNum if isinstance(entity, AccountID) else entity.topicNum
    return f"{entity.shardNum}.{entity.realmNum}.{number}"


def account_id(text: str) -> AccountID:
    """Parse an account id."""
    shard, realm, number = (int(part) for part in text.split("."))
    return AccountID(shardNum=shard, realmNum=realm, accountNum=number)


def topic_id(text: str) -> TopicID:
    """Parse a topic id."""
    shard, realm, number = (int(part) for part in text.split("."))
    return TopicID(shardNum=shard, realmNum=realm, topicNum=number)


def timestamp_of(nanoseconds: int) -> Timestamp:
    """Write nanoseconds as a protobuf timestamp."""
    return Timestamp(seconds=nanoseconds // NANOSECONDS, nanos=nanoseconds % NANOSECONDS)


def nanoseconds_of(timestamp: Timestamp) -> int:
    """Read a protobuf timestamp as nanoseconds."""
    return int(timestamp.seconds) * NANOSECONDS + int(timestamp.nanos)


def transaction_name(transaction_id: TransactionID) -> str:
    """Write a transaction id as mirror nodes do: `0.0.1001-1700000000-000000001`."""
    start = transaction_id.transactionValidStart
    return f"{id_of(transaction_id.accountID)}-{start.seconds}-{start.nanos:09d}"
