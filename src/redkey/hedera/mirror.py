"""A mirror node by REST: what it says, checked for its form. Who trusts which part of it is decided elsewhere.

Every call is one bounded request, without redirects or proxies. NetworkAway if no usable answer came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

import httpx2
import msgspec

from redkey.errors import NetworkAway
from redkey.ledger.fees import ExchangeRate
from redkey.ledger.record import hedera_time, parse_hedera_time

SECONDS = 10.0
PAGE = 100
_ANSWER_LIMIT = 16 * 1024 * 1024
# How many pages without a transaction are read one after the other: enough for decades of weeks.
_EMPTY_PAGES = 1000

T = TypeVar("T")


class MirrorTransfer(msgspec.Struct, frozen=True):
    """An amount that a transaction moved to an account, or from it when negative."""

    account: str
    amount: int


class MirrorTransaction(msgspec.Struct, frozen=True):
    """A transaction as the mirror shows it; the fee is in tinybars."""

    transaction_id: str
    consensus_timestamp: str
    result: str
    name: str
    charged_tx_fee: int
    entity_id: str | None = None
    transfers: tuple[MirrorTransfer, ...] = ()

    @property
    def timestamp(self) -> int:
        """The consensus time in nanoseconds."""
        return parse_hedera_time(self.consensus_timestamp)

    def paid_by(self, account: str) -> int:
        """Return what an account paid in all, custom fees included, in tinybars."""
        return -sum(one.amount for one in self.transfers if one.account == account)


class MirrorKey(msgspec.Struct, frozen=True):
    """A key as the mirror shows it: its type, and its bytes in hex."""

    kind: str = msgspec.field(name="_type")
    key: str


class FixedFee(msgspec.Struct, frozen=True):
    """A fixed fee of a topic (HIP-991), in tinybars or in units of a token."""

    amount: int
    collector_account_id: str
    denominating_token_id: str | None = None


class CustomFees(msgspec.Struct, frozen=True):
    """The custom fees of a topic."""

    fixed_fees: tuple[FixedFee, ...] = ()


class MirrorTopic(msgspec.Struct, frozen=True):
    """A topic as the mirror shows it."""

    topic_id: str
    memo: str = ""
    created_timestamp: str | None = None
    deleted: bool = False
    admin_key: MirrorKey | None = None
    submit_key: MirrorKey | None = None
    custom_fees: CustomFees = CustomFees()

    @property
    def created_at(self) -> int:
        """The consensus time of its creation in nanoseconds; 0 if the mirror does not have it."""
        return parse_hedera_time(self.created_timestamp) if self.created_timestamp else 0


class _Balance(msgspec.Struct, frozen=True):
    balance: int


class MirrorAccount(msgspec.Struct, frozen=True):
    """An account as the mirror shows it."""

    account: str
    balance: _Balance
    deleted: bool | None = False
    key: MirrorKey | None = None

    @property
    def tinybars(self) -> int:
        """The balance."""
        return self.balance.balance


class _Links(msgspec.Struct, frozen=True):
    next: str | None = None


class _Transactions(msgspec.Struct, frozen=True):
    transactions: tuple[MirrorTransaction, ...]
    links: _Links = _Links()


class _Messages(msgspec.Struct, frozen=True):
    messages: tuple[dict[str, Any], ...]


class _Rate(msgspec.Struct, frozen=True):
    cent_equivalent: int
    hbar_equivalent: int
    expiration_time: int


class _Rates(msgspec.Struct, frozen=True):
    current_rate: _Rate


class _Span(msgspec.Struct, frozen=True):
    to: str


class _Block(msgspec.Struct, frozen=True):
    timestamp: _Span


class _Blocks(msgspec.Struct, frozen=True):
    blocks: tuple[_Block, ...]


class _Estimate(msgspec.Struct, frozen=True):
    total: int


class Mirror:
    """One mirror node. Safe to use from several threads."""

    def __init__(self, url: str, *, seconds: float = SECONDS) -> None:
        self.url = url.rstrip("/")
        self._http = httpx2.Client(timeout=seconds, follow_redirects=False, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def messages(self, topic: str, **bounds: str | int) -> tuple[dict[str, Any], ...]:
        """Return one page of rows as they came, oldest first; such as `timestamp="gt:1700000000.000000000"`."""
        asked = {"limit": PAGE, "order": "asc", **bounds}
        return self._get(f"/topics/{topic}/messages", _Messages, asked).messages

    def messages_after(self, topic: str, timestamp: int, limit: int = PAGE) -> tuple[dict[str, Any], ...]:
        """Return the first page of rows after a consensus time."""
        return self.messages(topic, timestamp=f"gt:{hedera_time(timestamp)}", limit=limit)

    def topic(self, topic: str) -> MirrorTopic | None:
        """Return a topic; None if the mirror does not know it."""
        return self._find(f"/topics/{topic}", MirrorTopic)

    def account(self, account: str) -> MirrorAccount | None:
        """Return an account; None if the mirror does not know it."""
        return self._find(f"/accounts/{account}", MirrorAccount)

    def transaction(self, transaction_id: str) -> MirrorTransaction | None:
        """Return the transaction with this id; None if the mirror does not know it. Repeats of it are left out."""
        found = self._find(f"/transactions/{transaction_id}", _Transactions)
        for one in found.transactions if found is not None else ():
            if one.result != "DUPLICATE_TRANSACTION":
                return one
        return None

    def transactions(
        self, account: str, kind: str, since: int, *, newest_first: bool = False
    ) -> Iterator[MirrorTransaction]:
        """Yield the transactions of one kind that an account took part in since a time.

        A mirror looks at some weeks in one request, so a page may be empty and others follow: the links tell.
        """
        order = "desc" if newest_first else "asc"
        asked = {"account.id": account, "transactiontype": kind, "order": order, "limit": PAGE}
        target, empty = f"/transactions?{urlencode({**asked, 'timestamp': f'gte:{hedera_time(since)}'}, safe=':')}", 0
        seen = {target}
        while True:
            page = self._get(target, _Transactions)
            yield from page.transactions
            if page.links.next is None:
                return
            empty = 0 if page.transactions else empty + 1
            path, _, query = page.links.next.partition("?")
            target = f"/transactions?{query}"
            if not path.endswith("/api/v1/transactions") or "//" in path or target in seen or empty > _EMPTY_PAGES:
                raise self._unusable(f"the link to the next page leads nowhere: {page.links.next[:200]}")
            seen.add(target)

    def exchange_rate(self) -> ExchangeRate:
        """Return the exchange rate that fees are charged by now."""
        rate = self._get("/network/exchangerate", _Rates).current_rate
        if rate.cent_equivalent < 1 or rate.hbar_equivalent < 1:
            raise self._unusable("the exchange rate is not positive")
        return ExchangeRate(rate.cent_equivalent, rate.hbar_equivalent, rate.expiration_time)

    def estimate(self, transaction: bytes) -> int | None:
        """Return what a transaction would cost in tinycents (HIP-1261); None if this mirror has no estimates."""
        response = self._send("POST", "/network/fees", content=transaction)
        return self._read(response, _Estimate).total if response.status_code == 200 else None

    def complete_until(self) -> int:
        """Return the time up to which the mirror has everything: the end of its last block."""
        blocks = self._get("/blocks", _Blocks, {"limit": 1, "order": "desc"}).blocks
        if not blocks:
            raise self._unusable("there are no blocks")
        return parse_hedera_time(blocks[0].timestamp.to)

    def _get(self, path: str, kind: type[T], asked: Mapping[str, str | int] | None = None) -> T:
        found = self._find(path, kind, asked)
        if found is None:
            raise self._unusable(f"{path} is not found; is this the REST address of a mirror node?")
        return found

    def _find(self, path: str, kind: type[T], asked: Mapping[str, str | int] | None = None) -> T | None:
        response = self._send("GET", f"{path}?{urlencode(asked, safe=':')}" if asked else path)
        if response.status_code == 404:
            return None
        if response.status_code != 200:
            raise self._unusable(f"status {response.status_code}: {response.text[:200]}")
        return self._read(response, kind)

    def _send(self, method: str, target: str, content: bytes | None = None) -> httpx2.Response:
        try:
            headers = {} if content is None else {"content-type": "application/protobuf"}
            url = f"{self.url}/api/v1{target}"
            with self._http.stream(method, url, content=content, headers=headers) as response:
                read = bytearray()
                for chunk in response.iter_bytes():
                    read += chunk
                    if len(read) > _ANSWER_LIMIT:
                        raise self._unusable(f"more than {_ANSWER_LIMIT:,} bytes")
                response._content = bytes(read)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as cause:
            text = f"no answer from the mirror {self.url}: {cause!r}; check `hedera.mirror_url`, or try again later"
            raise NetworkAway(text, code="mirror_unreachable") from cause
        if response.status_code == 429:
            raise NetworkAway(f"the mirror {self.url} limits requests; try again later", code="mirror_busy")
        return response

    def _read(self, response: httpx2.Response, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(response.content, type=kind)
        except msgspec.DecodeError as cause:
            raise self._unusable(str(cause)) from cause

    def _unusable(self, reason: str) -> NetworkAway:
        return NetworkAway(f"the mirror {self.url} gave no usable answer: {reason}", code="mirror_unusable")
