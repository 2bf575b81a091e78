"""The outbox: sends events to webhooks and task updates to A2A push receivers, at least once, in order, signed.

Each subscription has its own place on the ledger, stored as a row: after a crash it continues from there. A receiver
that does not answer is retried after growing pauses and parked in the end; it delays no other. One process of a data
directory delivers; another takes over when it stops.
"""

from __future__ import annotations

import asyncio
import hmac
import random
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
import structlog

from redkey.config import Outbox as Settings
from redkey.errors import FetchRefused, StoreError, TooManySubscribers
from redkey.ledger.ports import Clock, Reader, SequencedStore, Unit
from redkey.ledger.record import Record
from redkey.readmodel.a2a_view import Lens
from redkey.readmodel.deliveries import (
    DUE,
    ENDED,
    PARKED,
    Delivery,
    delivery_of,
    delivery_row,
    read_delivery,
    read_webhook,
    webhook_settings,
)
from redkey.readmodel.events import show
from redkey.readmodel.rows import DELIVERY, entity, pages_of
from redkey.reducers.entities import Webhook
from redkey.services.addresses import read_target
from redkey.services.failures import Unavailable
from redkey.services.outcome import Settled
from redkey.services.safe_fetch import FetchPolicy, check_static, safe_post
from redkey.services.subscriptions import Filter, Subscriptions
from redkey.wire.envelope import wire_of
from redkey.wire.events import PushSet, WebhookSet

T = TypeVar("T")
_PAGE = 200
_TICK_SECONDS = 2.0
_WAIT_SECONDS = 30.0
# The row under this key holds the record up to which subscriptions were read.
_REACHED = ""
_SUBSCRIPTIONS = frozenset({"webhook.set", "webhook.removed", "push.set", "push.removed"})
# The longest part of a failure that is stored.
_ERROR = 200
_GONE = 410
_log = structlog.get_logger("redkey.outbox")
_encode = msgspec.json.Encoder().encode


class Act(Protocol):
    """Runs work in a unit of its own."""

    async def __call__(self, topic: str, work: Callable[[Unit], T]) -> T: ...


class Alone(Protocol):
    """The lock of the one process that delivers."""

    def take(self) -> bool: ...

    def release(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class Means:
    """The dependencies of the outbox of one server."""

    store: SequencedStore
    act: Act
    subscriptions: Subscriptions
    clock: Clock
    settings: Settings
    public_url: str
    sign: Callable[[bytes], bytes]
    secret: Callable[[str], str]
    alone: Alone


class Parcel(msgspec.Struct, frozen=True):
    """One request to a receiver, and the place of the subscription once it is accepted."""

    id: str
    body: bytes
    after: Delivery
    ends: bool = False


def policy_of(settings: Settings) -> FetchPolicy:
    """Which URLs may be called."""
    return FetchPolicy(settings.allow_private, frozenset({443, *settings.ports}), settings.answer_seconds)


def check_url(url: str, settings: Settings) -> None:
    """FetchRefused for a URL that may not be called, as far as the URL alone shows."""
    target = read_target(url)
    check_static(target, policy_of(settings))
    hosts = settings.hosts
    if hosts and not any(target.host == host or (host[:1] == "." and target.host.endswith(host)) for host in hosts):
        raise FetchRefused("The URL is refused: its host is not on the allow list.", code="url_refused")


class Outbox:
    """All deliveries of a server."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        # Set when a subscription was set or removed.
        self._woken = asyncio.Event()

    def start(self) -> None:
        """Start to deliver, as soon as no other process does."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop all deliveries; requests without an answer are sent again later."""
        tasks = [*self._running.values(), *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._running.clear()
        self._means.alone.release()

    def heard(self, topic: str, records: Sequence[Settled]) -> None:
        """Wake the outbox if a subscription was set or removed; a listener for the coordinator."""
        if any(record.event.type in _SUBSCRIPTIONS for record in records):
            self._woken.set()

    async def _run(self) -> None:
        while True:
            try:
                if self._means.alone.take():
                    for topic in self._means.store.topics():
                        await self._look(topic)
            except (StoreError, Unavailable) as failure:
                _log.warning("deliveries wait for the store", code=failure.code)
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._woken.wait()
            self._woken.clear()

    async def _look(self, topic: str) -> None:
        """Read which subscriptions were set and removed, and start a delivery for every one that is due."""
        store, changed = self._means.store, set[str]()
        if any(_subscribes(record) for record in _since(store, topic, _reached(store, topic))):
            changed = await self._means.act(topic, lambda unit: _take_in(unit, topic))
        due = {delivery_of(row).key for row in pages_of(store, topic, DELIVERY, DUE)}
        for (where, key), task in tuple(self._running.items()):
            if where == topic and (task.done() or key not in due or key in changed):
                task.cancel()
                del self._running[where, key]
        for key in due - {one for where, one in self._running if where == topic}:
            work = self._deliver(topic, key)
            self._running[topic, key] = asyncio.get_running_loop().create_task(work)

    async def _deliver(self, topic: str, key: str) -> None:
        """Deliver to one subscription until it is removed, parked or has ended; retry when a step fails."""
        means = self._means
        delivery, webhook = read_delivery(means.store, topic, key), read_webhook(means.store, topic, key)
        if delivery is None or webhook is None:
            return
        settings = webhook_settings(means.store, topic, webhook)
        wanted = Filter(task_id=webhook.task_id, types=frozenset(settings.get("types", ())))
        try:
            following = means.subscriptions.open(topic, delivery.sequence, wanted)
        except TooManySubscribers:
            return
        try:
            while delivery.state == DUE and not means.subscriptions.stopping:
                parcel = self._next(topic, webhook, settings, delivery)
                if parcel is not None:
                    delivery = await self._send(topic, webhook, settings, delivery, parcel)
                elif not following.take() and not following.behind:
                    # Nothing up to here is wanted, so it is not read again.
                    delivery = msgspec.structs.replace(delivery, sequence=max(delivery.sequence, following.position))
                    await following.wait(_WAIT_SECONDS)
        except (StoreError, Unavailable) as failure:
            _log.warning("a delivery waits for the store", webhook_id=webhook.webhook_id, code=failure.code)
        except Exception as fault:
            # One subscription must not end the others; the next scan starts it again.
            _log.error("a delivery failed", webhook_id=webhook.webhook_id, exc_info=fault)
        finally:
            following.leave()

    def _next(self, topic: str, webhook: Webhook, settings: Mapping[str, Any], delivery: Delivery) -> Parcel | None:
        """Return the next request; None if there is none yet."""
        if webhook.task_id:
            return self._update(topic, webhook, delivery)
        types, after = frozenset(settings.get("types", ())), delivery.sequence
        while records := self._means.store.read(topic, after, _PAGE):
            for record in records:
                after = record.sequence
                wire = wire_of(record.wire)
                if not types or wire.type in types:
                    event = show(wire, record.sequence, record.timestamp)
                    return Parcel(event.event_id, _encode(event), msgspec.structs.replace(delivery, sequence=after))
        return None

    def _update(self, topic: str, webhook: Webhook, delivery: Delivery) -> Parcel | None:
        lens = Lens(self._means.store, topic, self._means.public_url)
        sighted = lens.sight(webhook.task_id, delivery.sequence)
        if sighted is None:
            return None
        for told in lens.after(sighted.task, delivery.sequence, delivery.skipped):
            whole, _, taken = told.position.partition(".")
            sequence, skipped = (int(whole) - 1, int(taken)) if taken else (int(whole), 0)
            done = msgspec.structs.replace(delivery, sequence=sequence, skipped=skipped)
            ends = told.task.closed and not taken
            return Parcel(f"{webhook.webhook_id}.{told.position}", _encode(told.found), done, ends)
        return None

    async def _send(
        self, topic: str, webhook: Webhook, settings: Mapping[str, Any], delivery: Delivery, parcel: Parcel
    ) -> Delivery:
        """Send one request until it is accepted or the receiver is parked; return the new place of the subscription."""
        means = self._means
        while True:
            wait = (delivery.next_at - means.clock.wall()) / 1e9
            if delivery.attempts and wait > 0:
                await asyncio.sleep(wait)
            failure = await self._post(webhook, settings, parcel)
            now = means.clock.wall()
            if not failure:
                delivery = msgspec.structs.replace(
                    parcel.after,
                    state=ENDED if parcel.ends else DUE,
                    delivered=delivery.delivered + 1,
                    delivered_at=now,
                    attempts=0,
                    last_error="",
                    next_at=0,
                )
            else:
                delivery = after_failure(delivery, failure, now, means.settings)
                if delivery.state == PARKED:
                    _log.warning("a receiver is parked", webhook_id=webhook.webhook_id, reason=failure)
            await means.act(topic, partial(_keep, topic=topic, delivery=delivery))
            if not failure or delivery.state == PARKED:
                return delivery

    async def _post(self, webhook: Webhook, settings: Mapping[str, Any], parcel: Parcel) -> str:
        """Send a request; return why it was not accepted, empty if it was."""
        means = self._means
        try:
            url = settings["url"]
            check_url(url, means.settings)
            headers = self._headers(webhook, settings, parcel)
            status = await safe_post(url, parcel.body, headers, policy_of(means.settings))
        except KeyError:
            return "its settings were erased"
        except FetchRefused as refused:
            return refused.message
        return "" if 200 <= status < 300 else f"status {status}"

    def _headers(self, webhook: Webhook, settings: Mapping[str, Any], parcel: Parcel) -> dict[str, str]:
        """Sign as Standard Webhooks: by the webhook's secret, and by the key that `/.well-known/jwks.json` shows."""
        means = self._means
        at = str(means.clock.wall() // 1_000_000_000)
        signed = f"{parcel.id}.{at}.".encode() + parcel.body
        signatures = [f"v1a,{b64encode(means.sign(signed)).decode()}"]
        headers = {"webhook-id": parcel.id, "webhook-timestamp": at}
        if webhook.task_id:
            headers["content-type"] = "application/a2a+json"
            headers["a2a-version"] = "1.0"
            if settings.get("token"):
                headers["x-a2a-notification-token"] = settings["token"]
            authentication = settings.get("authentication")
            if authentication:
                credentials = authentication.get("credentials", "")
                headers["authorization"] = f"{authentication['scheme']} {credentials}".strip()
        else:
            headers["content-type"] = "application/json"
            secret = b64decode(means.secret(webhook.webhook_id).removeprefix("whsec_"))
            signatures.insert(0, f"v1,{b64encode(hmac.digest(secret, signed, 'sha256')).decode()}")
        return headers | {"webhook-signature": " ".join(signatures)}


def after_failure(delivery: Delivery, failure: str, now: int, settings: Settings) -> Delivery:
    """Return the place of a subscription whose request was not accepted: when it is retried, or that it is parked."""
    attempts = delivery.attempts + 1
    # A receiver that says it is gone is not asked again.
    parked = attempts >= settings.attempts or failure == f"status {_GONE}"
    wait = min(settings.retry_seconds * 2 ** min(delivery.attempts, 30), settings.longest_seconds)
    # Receivers that failed together are not called together again.
    next_at = now + int(wait * random.uniform(0.8, 1.2) * 1e9)  # noqa: S311 - nothing secret
    return msgspec.structs.replace(
        delivery,
        state=PARKED if parked else DUE,
        attempts=attempts,
        last_error=failure[:_ERROR],
        next_at=0 if parked else next_at,
    )


def _keep(unit: Unit, topic: str, delivery: Delivery) -> None:
    """Store the place of a subscription, unless it was removed meanwhile."""
    if read_webhook(unit, topic, delivery.key) is not None:
        unit.put_rows(topic, [delivery_row(delivery)])


def _reached(reader: Reader, topic: str) -> int:
    """Return the record up to which subscriptions were read."""
    found = read_delivery(reader, topic, _REACHED)
    return found.sequence if found is not None else 0


def _since(reader: Reader, topic: str, after: int) -> Iterator[Record]:
    """Yield what was recorded about the workspace itself after a place: subscriptions are among it."""
    row = reader.row(topic, "workspace", "")
    workspace_id = entity(row).workspace_id if row is not None else ""
    while records := reader.events(topic, workspace_id, after, _PAGE):
        yield from records
        after = records[-1].sequence


def _subscribes(record: Record) -> bool:
    return b'"type":"webhook.' in record.wire or b'"type":"push.' in record.wire


def _take_in(unit: Unit, topic: str) -> set[str]:
    """Start deliveries to new subscriptions, and stop those of removed ones; return the keys of both."""
    rows: dict[str, Delivery | None] = {}
    after = _reached(unit, topic)
    for record in _since(unit, topic, after):
        after = record.sequence
        if not _subscribes(record):
            continue
        payload = wire_of(record.wire).payload
        name = getattr(payload, "push_id", "")
        key = f"{getattr(payload, 'task_id', '')}/{name}" if name else getattr(payload, "webhook_id", "")
        rows[key] = None
        if isinstance(payload, WebhookSet | PushSet) and (webhook := read_webhook(unit, topic, key)) is not None:
            # A config that is set again continues where it was.
            before = read_delivery(unit, topic, key)
            begin = int(webhook_settings(unit, topic, webhook).get("after", after))
            rows[key] = Delivery(key, begin) if before is None else msgspec.structs.replace(before, state=DUE)
    unit.put_rows(topic, [delivery_row(one) for one in rows.values() if one is not None])
    unit.delete_rows(topic, DELIVERY, [key for key, one in rows.items() if one is None])
    unit.put_rows(topic, [delivery_row(Delivery(_REACHED, after, state="reached"))])
    return set(rows)
