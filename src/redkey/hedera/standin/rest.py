"""The mirror node of a stand-in network by REST: topics, messages, transactions, accounts, fees and exchange rate.

Answers, errors and paging are those of the real mirror: pages have 25 rows, at most 100, and link to the next one
by time; a request for transactions looks at 60 days; an unknown topic has no messages; errors are
`{"_status": {"messages": [...]}}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec
from google.protobuf.message import DecodeError
from hiero_sdk_python.hapi.services.transaction_pb2 import Transaction

from redkey.hedera.standin import prices
from redkey.hedera.standin.nodes import changed
from redkey.hedera.standin.pages import (
    Asked,
    MirrorError,
    custom_fees_row,
    integer,
    key_row,
    kind_of,
    link,
    read_asked,
    time_of,
    transaction_row,
)
from redkey.hedera.standin.signatures import Refused, Signed
from redkey.hedera.standin.state import Executed, Message, NetworkState, id_of, nanoseconds_of
from redkey.ledger import fees
from redkey.ledger.mirror import mirror_row
from redkey.ledger.record import hedera_time
from redkey.wire.times import NANOSECONDS

_BODY_LIMIT = 64 * 1024
# How much of the history of transactions one request looks at.
_WINDOW = 60 * 86_400 * NANOSECONDS
_MESSAGE_VALUES: Final[Mapping[str, Callable[[Message], int]]] = {
    "sequencenumber": lambda one: one.record.sequence,
    "timestamp": lambda one: one.record.timestamp,
}
_HISTORY_VALUES: Final[Mapping[str, Callable[[Executed], int]]] = {"timestamp": lambda one: one.timestamp}
_ENTITY = r"(\d+\.\d+\.\d+)"


class MirrorRest:
    """Answers requests to the mirror from the state of the network."""

    def __init__(self, state: NetworkState) -> None:
        self._state = state
        self._routes: tuple[tuple[re.Pattern[str], Callable[..., Any]], ...] = tuple(
            (re.compile(f"/api/v1{path}"), answer)
            for path, answer in (
                (rf"/topics/{_ENTITY}/messages", self._messages),
                (rf"/topics/{_ENTITY}/messages/(\d+)", self._message),
                (rf"/topics/{_ENTITY}", self._topic),
                (r"/transactions", self._transactions),
                (rf"/transactions/({_ENTITY[1:-1]}-\d+-\d{{1,9}})", self._transaction),
                (rf"/accounts/{_ENTITY}", self._account),
                (r"/network/exchangerate", self._exchange_rate),
                (r"/network/fees", self._gas),
                (r"/blocks", self._blocks),
            )
        )

    def get(self, target: str) -> Any:
        """Answer a GET; raise MirrorError."""
        if self._state.faults.happens("mirror_down"):
            raise MirrorError(503, "Service unavailable")
        url = urlsplit(target)
        pairs = parse_qsl(url.query, keep_blank_values=True)
        for pattern, answer in self._routes:
            if found := pattern.fullmatch(url.path):
                with self._state.changed:
                    return answer(pairs, *found.groups())
        raise MirrorError(404, "Not found")

    def estimate(self, body: bytes) -> Any:
        """Answer POST /network/fees: what a transaction would cost, in tinycents (HIP-1261)."""
        try:
            signed = Signed(Transaction.FromString(body))
            with self._state.changed:
                total = prices.price_of(self._state, signed.body, len(signed.pairs))
        except (Refused, DecodeError, KeyError) as cause:
            raise MirrorError(400, "Invalid transaction") from cause
        node = total // 10
        return {
            "high_volume_multiplier": 1,
            "network": {"multiplier": 9, "subtotal": node * 9},
            "node": {"base": node, "extras": []},
            "service": {"base": total - node * 10, "extras": []},
            "total": total,
        }

    def _messages(self, pairs: Sequence[tuple[str, str]], topic_id: str) -> Any:
        asked = read_asked(pairs, {"sequencenumber": integer, "timestamp": time_of}, {"encoding"}, newest_first=False)
        shown = asked.within(self._state.shown(topic_id), _MESSAGE_VALUES)
        page = list(islice(asked.page(shown), asked.limit))
        rows: list[dict[str, Any]] = []
        for message in page:
            row = self._row(message)
            rows += [row] * (2 if self._state.faults.happens("repeat") else 1)
            if self._state.faults.happens("skip"):
                del rows[-1]
        last = page[-1].record.timestamp if len(page) == asked.limit else None
        return {"links": {"next": link(f"/api/v1/topics/{topic_id}/messages", asked, last)}, "messages": rows}

    def _row(self, message: Message) -> dict[str, Any]:
        record = message.record
        if self._state.faults.happens("change_byte"):
            record = msgspec.structs.replace(record, wire=changed(record.wire))
        row = mirror_row(record)
        if message.chunk is not None:
            first = message.chunk.initialTransactionID
            row["chunk_info"] = {
                "initial_transaction_id": {
                    "account_id": id_of(first.accountID),
                    "nonce": first.nonce,
                    "scheduled": first.scheduled,
                    "transaction_valid_start": hedera_time(nanoseconds_of(first.transactionValidStart)),
                },
                "number": message.chunk.number,
                "total": message.chunk.total,
            }
        return row

    def _message(self, pairs: Sequence[tuple[str, str]], topic_id: str, sequence: str) -> Any:
        shown, number = self._state.shown(topic_id), int(sequence)
        if not 1 <= number <= len(shown):
            raise MirrorError(404, "Not found")
        return self._row(shown[number - 1])

    def _topic(self, pairs: Sequence[tuple[str, str]], topic_id: str) -> Any:
        topic = self._state.topics.get(topic_id)
        if topic is None:
            raise MirrorError(404, "Not found")
        return {
            "admin_key": key_row(topic.admin_key),
            "auto_renew_account": topic.auto_renew_account,
            "auto_renew_period": topic.auto_renew_seconds,
            "created_timestamp": hedera_time(topic.created_at),
            "custom_fees": custom_fees_row(topic),
            "deleted": topic.is_deleted,
            "fee_exempt_key_list": [key_row(key) for key in topic.fee_exempt_keys],
            "fee_schedule_key": key_row(topic.fee_schedule_key),
            "memo": topic.memo,
            "submit_key": key_row(topic.submit_key),
            "timestamp": {"from": hedera_time(topic.created_at), "to": None},
            "topic_id": topic_id,
        }

    def _transactions(self, pairs: Sequence[tuple[str, str]]) -> Any:
        asked = read_asked(
            pairs, {"timestamp": time_of}, {"account.id", "transactiontype", "result"}, newest_first=True
        )
        shown = self._state.shown_history()
        window, goes_on_at = self._window(asked, shown)
        account, kind = asked.others.get("account.id"), asked.others.get("transactiontype", "").upper()
        found = (
            one
            for one in asked.page(window)
            if (account is None or account in one.transfers) and kind in ("", kind_of(one))
        )
        page = list(islice(found, asked.limit))
        last = page[-1].timestamp if len(page) == asked.limit else goes_on_at
        return {
            "links": {"next": link("/api/v1/transactions", asked, last)},
            "transactions": [transaction_row(one) for one in page],
        }

    def _window(self, asked: Asked, shown: Sequence[Executed]) -> tuple[Sequence[Executed], int | None]:
        """Return the transactions that one request looks at, and where the next request goes on.

        As public mirrors do, one request looks at 60 days at most, from the lower bound on or, newest first, down from
        the upper one. So a page that is not full, even an empty one, is not the last if it links to another.
        """
        found, window = asked.within(shown, _HISTORY_VALUES), asked
        if not shown or asked.bound("eq") is not None:
            return found, None
        first, now = shown[0].timestamp, self._state.clock()
        if asked.is_newest_first:
            upper, lower = asked.bound("lt", "lte"), asked.bound("gt", "gte")
            end = (now if upper is None else upper) - _WINDOW
            is_last, sign = end <= max(first, lower or 0), "gte"
        else:
            lower, upper = asked.bound("gt", "gte"), asked.bound("lt", "lte")
            end = (first if lower is None else lower) + _WINDOW
            is_last, sign = end >= min(now, now if upper is None else upper), "lte"
        if is_last:
            return found, None
        window = asked._replace(bounds=[*asked.bounds, ("timestamp", sign, end)])
        return window.within(shown, _HISTORY_VALUES), end

    def _transaction(self, pairs: Sequence[tuple[str, str]], name: str) -> Any:
        account, seconds, nanos = name.rsplit("-", 2)
        name = f"{account}-{seconds}-{int(nanos):09d}"
        now = self._state.clock()
        found = [one for one in self._named(name) if one.mirrored_at <= now]
        if not found:
            raise MirrorError(404, "Not found")
        return {"transactions": [transaction_row(one) for one in found]}

    def _named(self, name: str) -> list[Executed]:
        account, seconds, nanos = name.rsplit("-", 2)
        start = int(seconds) * NANOSECONDS + int(nanos)
        return [one for one in self._state.by_start.get(start, ()) if id_of(one.transaction_id.accountID) == account]

    def _account(self, pairs: Sequence[tuple[str, str]], account_id: str) -> Any:
        account = self._state.accounts.get(account_id)
        if account is None:
            raise MirrorError(404, "Not found")
        return {
            "account": account_id,
            "balance": {"balance": account.balance, "timestamp": hedera_time(self._state.clock()), "tokens": []},
            "deleted": False,
            "key": key_row(account.key),
            "memo": account.memo,
        }

    def _exchange_rate(self, pairs: Sequence[tuple[str, str]]) -> Any:
        rate = {
            "cent_equivalent": self._state.rate.cents,
            "expiration_time": self._state.rate.expires,
            "hbar_equivalent": self._state.rate.hbars,
        }
        return {"current_rate": rate, "next_rate": rate, "timestamp": hedera_time(self._state.clock())}

    def _gas(self, pairs: Sequence[tuple[str, str]]) -> Any:
        gas = self._state.rate.tinybars(fees.USD // 10_000_000)
        names = ("ContractCall", "ContractCreate", "EthereumTransaction")
        rows = [{"gas": gas, "transaction_type": name} for name in names]
        return {"fees": rows, "timestamp": hedera_time(self._state.clock())}

    def _blocks(self, pairs: Sequence[tuple[str, str]]) -> Any:
        """Show up to when the mirror has everything: the end of its last block."""
        now = self._state.clock()
        shown, history = len(self._state.shown_history()), self._state.history
        end = now if shown == len(history) else history[shown].timestamp - 1
        block = {"number": end // (2 * NANOSECONDS), "timestamp": {"from": hedera_time(end), "to": hedera_time(end)}}
        return {"blocks": [block], "links": {"next": None}}


def handler(mirror: MirrorRest) -> type[BaseHTTPRequestHandler]:
    """Return the class that answers HTTP requests to a mirror."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # An answer leaves in one piece: in two, the second waits 40 ms for the acknowledgement of the first.
        wbufsize = -1

        def do_GET(self) -> None:
            self._answer(lambda: mirror.get(self.path))

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(min(length, _BODY_LIMIT))
            self._answer(lambda: mirror.estimate(body))

        def _answer(self, work: Callable[[], Any]) -> None:
            status = 200
            try:
                document = work()
            except MirrorError as error:
                status, document = error.status, {"_status": {"messages": [{"message": error.message}]}}
            data = msgspec.json.encode(document)
            self.send_response(status, HTTPStatus(status).phrase)
            self.send_header("content-type", "application/json; charset=utf-8")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing: a stand-in is called often."""

    return Handler
