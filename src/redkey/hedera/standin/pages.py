"""Pages and rows of a stand-in's mirror: the parameters of a request, the link to the next page, errors, entities."""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from hiero_sdk_python.hapi.services.basic_types_pb2 import Key

from redkey.hedera.standin.state import Executed, Topic, id_of, nanoseconds_of, transaction_name
from redkey.ledger.record import hedera_time, parse_hedera_time

_PAGE, _LARGEST_PAGE = 25, 100
_OPERATORS = {"eq", "gt", "gte", "lt", "lte"}
R = TypeVar("R")


class MirrorError(Exception):
    """An answer with an error: its status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Asked(NamedTuple):
    """The parameters of a request for a page."""

    bounds: Sequence[tuple[str, str, int]]
    limit: int
    is_newest_first: bool
    others: dict[str, str]

    def within(self, rows: Sequence[R], values: Mapping[str, Callable[[R], int]]) -> Sequence[R]:
        """Return the rows whose values are within all bounds. The rows are in the order of each of these values."""
        begin, end = 0, len(rows)
        for name, sign, bound in self.bounds:
            if sign in ("eq", "gte", "gt"):
                first = bisect_right if sign == "gt" else bisect_left
                begin = max(begin, first(rows, bound, key=values[name]))
            if sign in ("eq", "lte", "lt"):
                last = bisect_left if sign == "lt" else bisect_right
                end = min(end, last(rows, bound, key=values[name]))
        return rows[begin:end]

    def page(self, rows: Sequence[R]) -> Iterator[R]:
        """Yield rows in the order that was asked for."""
        return reversed(rows) if self.is_newest_first else iter(rows)

    def bound(self, *signs: str) -> int | None:
        """Return the strictest bound of the time with one of these signs; None if there is none."""
        found = [bound for name, sign, bound in self.bounds if name == "timestamp" and sign in signs]
        strictest = max if signs[0].startswith("g") else min
        return strictest(found, default=None)


def read_asked(
    pairs: Sequence[tuple[str, str]],
    ranges: dict[str, Callable[[str], int]],
    others: set[str],
    *,
    newest_first: bool,
) -> Asked:
    """Read the parameters of a page; raise MirrorError for those that the mirror refuses."""
    bounds, limit, order, rest = [], _PAGE, "desc" if newest_first else "asc", {}
    for name, text in pairs:
        value = text
        try:
            if name in ranges:
                sign, colon, bound = text.rpartition(":")
                if colon and sign not in _OPERATORS:
                    raise ValueError(text)
                bounds.append((name, sign or "eq", ranges[name](bound)))
            elif name == "limit":
                limit = min(integer(text), _LARGEST_PAGE)
                if limit < 1:
                    raise ValueError(text)
            elif name == "order":
                if text.lower() not in ("asc", "desc"):
                    raise ValueError(text)
                order = text.lower()
            elif name in others:
                rest[name] = value
            else:
                raise MirrorError(400, f"Unknown query parameter: {name}")
        except ValueError as cause:
            raise MirrorError(400, f"Invalid parameter: {name}") from cause
    return Asked(bounds, limit, order == "desc", rest)


def integer(text: str) -> int:
    """Parse a whole number; raise ValueError."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)


def time_of(text: str) -> int:
    """Parse a time with up to nine decimals; raise ValueError."""
    seconds, _, nanos = text.partition(".")
    return parse_hedera_time(f"{seconds}.{nanos.ljust(9, '0')}")


def link(path: str, asked: Asked, last: int | None) -> str | None:
    """Return the address of the next page, which begins after this time; None if there is none."""
    if last is None:
        return None
    order, sign = ("desc", "lt") if asked.is_newest_first else ("asc", "gt")
    kept = [
        (name, f"{op}:{hedera_time(bound) if name == 'timestamp' else bound}")
        for name, op, bound in asked.bounds
        if name != "timestamp" or op[0] not in (sign[0], "e")
    ]
    pairs = [*asked.others.items(), ("limit", str(asked.limit)), ("order", order), *kept]
    return f"{path}?{urlencode([*pairs, ('timestamp', f'{sign}:{hedera_time(last)}')], safe=':')}"


def key_row(key: Key | None) -> dict[str, str] | None:
    """Show a key."""
    if key is None:
        return None
    kind = key.WhichOneof("key")
    if kind in ("ed25519", "ECDSA_secp256k1"):
        return {"_type": "ED25519" if kind == "ed25519" else kind, "key": getattr(key, kind).hex()}
    return {"_type": "ProtobufEncoded", "key": key.SerializeToString().hex()}


def custom_fees_row(topic: Topic) -> dict[str, Any]:
    """Show the custom fees of a topic."""
    fixed = [
        {
            "amount": fee.fixed_fee.amount,
            "collector_account_id": id_of(fee.fee_collector_account_id),
            "denominating_token_id": None,
        }
        for fee in topic.custom_fees
    ]
    return {"created_timestamp": hedera_time(topic.created_at), "fixed_fees": fixed}


def kind_of(executed: Executed) -> str:
    """Return the type of a transaction as mirrors write it: CONSENSUSSUBMITMESSAGE."""
    return str(executed.body.WhichOneof("data")).upper()


def transaction_row(executed: Executed) -> dict[str, Any]:
    """Show a transaction."""
    body = executed.body
    return {
        "charged_tx_fee": executed.fee,
        "consensus_timestamp": hedera_time(executed.timestamp),
        "entity_id": executed.entity,
        "max_fee": str(body.transactionFee),
        "memo_base64": b64encode(body.memo.encode()).decode(),
        "name": kind_of(executed),
        "node": executed.node,
        "nonce": 0,
        "result": executed.status,
        "scheduled": False,
        "transaction_hash": b64encode(executed.hash).decode(),
        "transaction_id": transaction_name(executed.transaction_id),
        "transfers": [
            {"account": account, "amount": amount, "is_approval": False}
            for account, amount in sorted(executed.transfers.items())
            if amount
        ],
        "valid_duration_seconds": str(body.transactionValidDuration.seconds),
        "valid_start_timestamp": hedera_time(nanoseconds_of(executed.transaction_id.transactionValidStart)),
    }
