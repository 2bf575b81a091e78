"""The composition root: the only place where the parts of a server are put together."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import structlog

from redkey import __version__, fibers
from redkey.a2a.card import PATH as CARD_PATH
from redkey.a2a.door import PREFIX as A2A_PREFIX
from redkey.a2a.door import A2aDoor
from redkey.api.adapter import Api
from redkey.api.auth import Authenticator
from redkey.api.authorize import AUTHORIZE, CALLBACK, AuthorizeDoor
from redkey.api.call import Services
from redkey.api.logins import Logins
from redkey.api.metrics import Metrics
from redkey.api.stream import frame
from redkey.api.surface import operators_routes, routes
from redkey.bus.embedded import EmbeddedBus
from redkey.bus.http.call import BusCaller
from redkey.bus.http.face import BUS_ROUTES
from redkey.bus.http.origin import KnownHosts
from redkey.commands.actor import Actor
from redkey.commands.draft import Draft
from redkey.commands.registry import CreateKey
from redkey.config import CREDENTIALS, Config, Credentials
from redkey.errors import BusRefused, ConfigRefused, KeyRefused, RedKeyError
from redkey.http.exchange import Exchange
from redkey.http.limits import Limiter
from redkey.http.problems import Declined
from redkey.http.route import Route
from redkey.ledger.checkpoint import log_name
from redkey.ledger.fees import USD
from redkey.ledger.note import parse_key
from redkey.ledger.ports import Clock
from redkey.ledger.trust import TrustedKey, witness_keys
from redkey.mcp.door import PATH as MCP_PATH
from redkey.mcp.door import McpDoor
from redkey.reducers.world import RULES
from redkey.services.anchoring import Anchoring
from redkey.services.anchoring import Means as AnchorMeans
from redkey.services.authority import Authority
from redkey.services.bus_host import BusElsewhere, BusHost, claim_bus
from redkey.services.caller import Caller
from redkey.services.coordinator import Coordinator
from redkey.services.costs import Costs
from redkey.services.counting import Counting
from redkey.services.figures import Work
from redkey.services.identity_provider import IdentityProvider
from redkey.services.keys import KEY_SHAPE, KEY_TEXT, KeyRing, digest_of
from redkey.services.log_facts import workspace_of
from redkey.services.login_codes import LoginCodes
from redkey.services.mail import Mail
from redkey.services.network_fees import FeeLimits
from redkey.services.notices import Notices
from redkey.services.ordered.hosting import Orders
from redkey.services.ordered.means import OrderMeans
from redkey.services.outbox import Means as OutboxMeans
from redkey.services.outbox import Outbox
from redkey.services.people import LiveSessions
from redkey.services.recovery import FIRST_KEY_SCOPES
from redkey.services.signing_times import SigningSchedule, SignsInUnits
from redkey.services.signups import Signups
from redkey.services.struct_types import build_struct_types
from redkey.services.subscriptions import Subscriptions
from redkey.services.timers import Timers
from redkey.services.tokens import Tokens
from redkey.services.witnessing import Courier, Witnessing
from redkey.services.workspaces import Founding, begin_directly, first_policy, workspaces
from redkey.shapes.operation import Operation
from redkey.stores.durable import replace_file
from redkey.stores.ids import SystemIds
from redkey.stores.keys import server_id
from redkey.stores.opening import open_memory, open_signing, open_store
from redkey.studio.door import StudioDoor

_log = structlog.get_logger("redkey.app")
# Threads for queries and receipts: enough that one long query does not delay the others.
_THREADS = 4
# How many workspaces are anchored at once; each waits seconds for the network.
_ANCHOR_THREADS = 8
# How many messages of ordered workspaces are submitted at once; each waits seconds for the network.
_ORDER_THREADS = 48
# How many ordered workspaces are read at once.
_ORDER_READERS = 16
Door = Callable[[Exchange], Coroutine[Any, Any, None] | None]


class App:
    """One server: its parts, from the first request to the last."""

    def __init__(self, config: Config, on_fatal: Callable[[BaseException], None]) -> None:
        self.config = config
        build_struct_types()
        self.store = open_store(config.store or config.data, key_file=config.store_key_file)
        try:
            self._build(on_fatal)
        except BaseException:
            self.store.close()
            raise

    def _build(self, on_fatal: Callable[[BaseException], None]) -> None:
        config, store, ids = self.config, self.store, SystemIds()
        self.signing = open_signing(store)
        self.keys = KeyRing(store, store.secrets.issuing_secret(), time.monotonic)
        # Servers that start together on a new store create one workspace, not one each.
        with store.exclusive("first"):
            self.workspace_id, self.first_key = self._first_workspace(ids)
        self.metrics = Metrics()
        sign = SignsInUnits(self.signing, seconds=config.checkpoint_seconds, records=config.checkpoint_records)
        self.coordinator = Coordinator(store, ids, on_fatal=on_fatal, sign=sign)
        self.coordinator.on_measured = self.metrics.happened.commits.observe
        self.metrics.work = Work(store, self.coordinator).read
        self.subscriptions = Subscriptions(store, config.limits.subscribers, frame)
        self.metrics.gauge("waiting", "Callers that wait for a task.", lambda: self.coordinator.waiting)
        self.metrics.gauge("subscribers", "Followers of event streams.", lambda: self.subscriptions.count)
        self._schedule = SigningSchedule(
            self.signing,
            self.coordinator.join,
            on_failure=_signing_failed,
            seconds=config.checkpoint_seconds,
            records=config.checkpoint_records,
        )
        self._counting = Counting(self.coordinator.join)
        # A caller that lost its authority must not see what came after that: authority before subscriptions.
        self.authority = Authority(store, time.time)
        for listener in (
            self.keys.on_commit,
            self.authority.on_commit,
            self.subscriptions.hear,
            self._schedule.heard,
            self._counting.heard,
            self._count,
            self.metrics.happened.heard,
        ):
            self.coordinator.listen(listener)
        clock = store.clock
        self._timers = Timers(
            store,
            self.coordinator,
            self.subscriptions,
            clock,
            config.idle_world_seconds,
            on_fatal,
            self.authority,
            self.keys,
        )
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="redkey-read")
        self._heavy = ThreadPoolExecutor(1, thread_name_prefix="redkey-heavy")
        self._witnessing = Witnessing(
            store, self.signing, self.coordinator.act, self._threads, config.witness_seconds, on_fatal
        )
        if config.witnesses:
            self._call_witnesses()
        self._anchoring = self._anchor(on_fatal) if config.hedera.network is not None and config.hedera.topic else None
        if config.hedera.network is not None and not config.hedera.topic:
            _log.info("hedera.topic is not set: no checkpoint is anchored")
        self.orders = self._order() if config.hedera.network is not None else None
        self._bus_elsewhere: BusElsewhere | None = None
        self._open_doors(ids, clock, on_fatal)

    def _open_doors(self, ids: SystemIds, clock: Clock, on_fatal: Callable[[BaseException], None]) -> None:
        """Build what callers reach: the use cases with their dependencies, and the interfaces to them."""
        config, store = self.config, self.store
        name = log_name(self.signing.log.log_id)
        signers = store.secrets.signers(f"{name}/oauth", "oauth").signers()
        self._mail = Mail(config.login)
        self.live_sessions = LiveSessions(store, time.monotonic)
        self.tokens = Tokens(
            signers, self.keys, config.public_url, name, time.time, ids.ulid, self.live_sessions.is_live
        )
        limiter = Limiter(config.rate, time.monotonic, lambda: store.servers)
        logins = Logins(config.logins, time.monotonic, self.metrics, lambda: store.servers)
        surface = tuple(routes(open_metrics=config.open_metrics))
        served = (*surface, *operators_routes())
        self.services = Services(
            store=store,
            coordinator=self.coordinator,
            clock=clock,
            ids=ids,
            config=config,
            metrics=self.metrics,
            keys=self.keys,
            tokens=self.tokens,
            signing=self.signing,
            subscriptions=self.subscriptions,
            authority=self.authority,
            limiter=limiter,
            costs=Costs(config.cost, time.monotonic),
            login_codes=LoginCodes(time.monotonic),
            live_sessions=self.live_sessions,
            mail=self._mail,
            identity_provider=IdentityProvider(config.oidc, config.public_url + CALLBACK),
            signups=Signups(config.signup, time.monotonic),
            scratch_store=open_memory,
            orders=self.orders,
            servers_behind=store.servers_behind,
            logins=logins,
            threads=self._threads,
            heavy=self._heavy,
            operations=operations_of(surface),
        )
        self._outbox = Outbox(
            OutboxMeans(
                store=store,
                act=self.coordinator.act,
                subscriptions=self.subscriptions,
                clock=clock,
                settings=config.outbox,
                public_url=config.public_url,
                sign=self.tokens.sign,
                secret=self.keys.webhook_secret,
                alone=store.holder("outbox"),
            )
        )
        self.coordinator.listen(self._outbox.heard)
        self._authenticator = Authenticator(self.keys, self.tokens, limiter, logins)
        self._open_paths(served, on_fatal)

    def _open_paths(self, surface: tuple[Route, ...], on_fatal: Callable[[BaseException], None]) -> None:
        """Build the interfaces, and map paths to them."""
        config = self.config
        self.api = Api(surface, self.services, self._authenticator, self.metrics)
        self.a2a = A2aDoor(self.services, self._authenticator, self.workspace_id)
        hosts = KnownHosts((urlsplit(config.public_url).hostname or "", config.host), addresses=True)
        # Where this server listens, once it does; tools of /mcp call it there.
        self.url = config.public_url
        studio, login_pages = StudioDoor(), AuthorizeDoor(self.services)
        self._mcp = McpDoor(lambda: self.url, partial(_check_host, hosts), self._admit_to_mcp)
        self._bus = EmbeddedBus(
            config.data.absolute() / "bus",
            self.workspace_id,
            self._admit_to_bus,
            hosts,
            Notices(self.store, self.subscriptions),
            on_fatal,
            self._find_bus if config.store else None,
        )
        # By the first part of a path, or by the whole of it; every other path is the API's.
        self._doors: dict[str, Door] = {
            MCP_PATH: self._mcp,
            "api": self._bus,
            A2A_PREFIX.removeprefix("/"): self.a2a,
            CARD_PATH: self.a2a,
            "studio": studio,
            AUTHORIZE: login_pages,
            CALLBACK: login_pages,
            "/": studio,
        }
        self.metrics.gauge("requests_open", "Requests that are being answered.", lambda: self.api.open)

    def _call_witnesses(self) -> None:
        # Few servers have witnesses, and importing an HTTP client is slow.
        from redkey.services.witness_post import WitnessPost

        try:
            keys = witness_keys([TrustedKey(parse_key(one.key)) for one in self.config.witnesses])
        except KeyRefused as refused:
            raise ConfigRefused(f"the configuration is wrong: witnesses: {refused.message}") from refused
        post = WitnessPost()
        for witness, key in zip(self.config.witnesses, keys, strict=True):
            self._witnessing.add(Courier(witness.url, key, self.store, post))
        self.coordinator.listen(self._witnessing.heard)
        self.metrics.gauge("witnesses_away", "Witnesses without an answer to use.", lambda: self._witnessing.away)

    def _anchor(self, on_fatal: Callable[[BaseException], None]) -> Anchoring:
        # Few servers anchor, and importing gRPC is slow.
        from redkey.hedera.opening import open_anchor_post

        settings = self.config.hedera
        self._anchor_threads = ThreadPoolExecutor(_ANCHOR_THREADS, thread_name_prefix="redkey-anchor")
        means = AnchorMeans(
            store=self.store,
            act=self.coordinator.act,
            threads=self._anchor_threads,
            post=open_anchor_post(settings),
            limits=FeeLimits(int(settings.budget_usd_per_hour * USD), int(settings.budget_usd_per_day * USD)),
            seconds=settings.anchor_seconds,
            alone=self.store.holder("anchor"),
        )
        anchoring = Anchoring(means, on_fatal)
        self.coordinator.listen(anchoring.heard)
        self.metrics.gauge("anchors_waiting", "Workspaces that failed to anchor.", lambda: anchoring.waiting)
        return anchoring

    def _order(self) -> Orders:
        # Few servers have workspaces that a network orders, and importing gRPC is slow.
        from redkey.hedera.opening import open_peers, open_topics

        settings = self.config.hedera
        topics, self._peers = open_topics(settings), open_peers(settings)
        self._order_threads = ThreadPoolExecutor(_ORDER_THREADS, thread_name_prefix="redkey-order")
        self._order_readers = ThreadPoolExecutor(_ORDER_READERS, thread_name_prefix="redkey-order-read")
        means = OrderMeans(
            path=self.coordinator,
            store=self.store,
            clock=self.store.clock,
            threads=self._order_threads,
            readers=self._order_readers,
            fetch=self._peers.fetch,
            facts=self._order_facts,
            limits=FeeLimits(int(settings.budget_usd_per_hour * USD), int(settings.budget_usd_per_day * USD)),
        )
        orders = Orders(topics, means, self.coordinator.order, open_memory)
        text = "Rows that a mirror repeated, changed or left out, and that were asked for again."
        self.metrics.gauge("mirror_rows_wrong", text, lambda: orders.noticed)
        return orders

    def _order_facts(self, topic: str) -> list[Draft]:
        """Return what this log must record of itself in an ordered workspace: who signs its checkpoints."""
        workspace_id = workspace_of(self.store, topic)
        return self.signing.facts(self.store, topic, workspace_id) if workspace_id is not None else []

    def __call__(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        path = exchange.path
        door = self._doors.get(path[1:].partition("/")[0]) or self._doors.get(path, self.api)
        if self.store.inline:
            return door(exchange)
        # A request reads across a network: meanwhile the loop serves others.
        answered: Coroutine[Any, Any, None] | None = fibers.run(door, exchange)
        return answered

    def login_link(self, key: str) -> str:
        """Return a link that opens the Studio once, with the rights of a key; empty if the key is not valid."""
        principal = self.keys.authenticate(key)
        return "" if principal is None else f"{self.url}/studio/#code={self.services.login_codes.make(principal)}"

    def _admit_to_mcp(self, exchange: Exchange) -> str:
        """Return the agent whose key or token a request carries; empty for other keys.

        A client without one learns where people log in (RFC 9728).
        """
        try:
            principal, _ = self._authenticator.admit(exchange.headers, exchange.connection.address, reads=False)
        except Declined as declined:
            if challenge := declined.headers.get("www-authenticate"):
                place = f"{self.config.public_url}/.well-known/oauth-protected-resource{MCP_PATH}"
                declined.headers = {**declined.headers, "www-authenticate": f'{challenge}, resource_metadata="{place}"'}
            raise
        exchange.connection.authenticated()
        return principal.actor.agent_id

    def _admit_to_bus(self, exchange: Exchange) -> BusCaller:
        """Return the holder of a key for the bus: in its workspace, and an agent's key for that agent alone."""
        looks, address = exchange.method in ("GET", "HEAD"), exchange.connection.address
        try:
            principal, _ = self._authenticator.admit(exchange.headers, address, reads=looks)
        except Declined as declined:
            code = "unauthenticated" if declined.status == 401 else declined.code
            raise BusRefused(declined.message, code=code) from declined
        actor, caller = principal.actor, Caller(self.services)
        caller.authenticated(principal)
        return BusCaller(
            workspace=actor.workspace_id,
            key_id=actor.key_id,
            scopes=actor.scopes,
            agent_id=actor.agent_id,
            may_write=actor.scopes != {"read"},
            hold=partial(self.authority.hold, principal),
            ledger_caller=caller,
        )

    async def start(self) -> None:
        """Start what runs beside the requests."""
        if not self.store.inline:
            fibers.run_tasks_in_fibers(asyncio.get_running_loop())
        await asyncio.create_task(self._start())

    async def _start(self) -> None:
        # Receipts are made in threads and may need a checkpoint: it goes through the coordinator too.
        self.signing.pass_through(self.coordinator.act_from_thread(asyncio.get_running_loop()))
        self.store.join(self.url, __version__, RULES, self.config.data)
        self._timers.start()
        self._witnessing.start()
        self._outbox.start()
        if self._anchoring is not None:
            self._anchoring.start()
        if self.orders is not None:
            self.orders.start()
        for topic in self.store.topics():
            # A process that died may have left records that no checkpoint covers.
            self._schedule.heard(topic, ())
            self._counting.heard(topic, ())
        if self.config.store:
            me = BusHost(server_id(self.config.data), self.url)
            await claim_bus(self.coordinator.act_on_store, me, move=self.config.bus_here)
            self._bus_elsewhere = BusElsewhere(self.store, me)
        await self._bus.start()
        await self.a2a.start()

    def _find_bus(self) -> str:
        """Return where the bus is, if another server of the database hosts it."""
        return self._bus_elsewhere() if self._bus_elsewhere is not None else ""

    def begin_stop(self) -> None:
        """Answer waiting callers, and end streams."""
        self.coordinator.begin_stop()
        self.subscriptions.begin_stop()
        self._bus.begin_stop()

    async def finish_stop(self) -> None:
        """Record the accepted requests, sign them, and release the data directory."""
        await self._bus.stop()
        await self.a2a.stop()
        await self._outbox.stop()
        await self._mcp.stop()
        await self._mail.stop()
        await self._timers.stop()
        await self._witnessing.stop()
        if self.orders is not None:
            await self.orders.stop()
        if self._anchoring is not None:
            await self._anchoring.stop()
            self._anchor_threads.shutdown()
        await self.coordinator.stop()
        # Not on the loop: a thread may wait for the loop to run an act.
        await asyncio.to_thread(self._threads.shutdown)
        self._heavy.shutdown()
        await self._schedule.stop()
        await self._counting.stop()
        if self.orders is not None:
            # Not on the loop: a thread may wait for the outcome of a message.
            await asyncio.to_thread(self._order_threads.shutdown)
            await asyncio.to_thread(self._order_readers.shutdown)
            self._peers.close()
            self.orders.close()
        self.store.close()

    def _first_workspace(self, ids: SystemIds) -> tuple[str, str | None]:
        """Return the first workspace, created if there is none; and its key only then, or if it is the preset one."""
        preset = os.environ.get("REDKEY_BOOTSTRAP_KEY", "")
        for _, workspace in workspaces(self.store):
            known = preset if preset and self.keys.authenticate(preset) is not None else None
            if preset and known is None:
                _log.warning("REDKEY_BOOTSTRAP_KEY is not a key of this data directory and is ignored")
            return workspace.workspace_id, known
        key_id = "key_" + ids.ulid()
        key = preset or self.keys.text(key_id)
        if not KEY_TEXT.fullmatch(key):
            raise ConfigRefused(f"REDKEY_BOOTSTRAP_KEY does not have the shape {KEY_SHAPE}")
        nobody = Actor("", key_id, frozenset(FIRST_KEY_SCOPES))
        create = CreateKey(key_id, key.rpartition("_")[0], FIRST_KEY_SCOPES, secret_sha256=digest_of(key))
        policy = first_policy(self.config)
        # The operator who starts a server has one key: it must be able to approve the gates of its own plans.
        begun = begin_directly(
            self.store, ids, self.signing, Founding(founder=nobody, key=create, policy=policy, self_approval=True)
        )
        return begun.workspace_id, key

    def _count(self, topic: str, records: Any) -> None:
        self.metrics.commits.inc()
        self.metrics.records.inc(len(records))


def _check_host(hosts: KnownHosts, exchange: Exchange) -> None:
    try:
        hosts(exchange)
    except BusRefused as refused:
        raise Declined(403, refused.code, refused.message) from refused


def operations_of(surface: Iterable[Route]) -> tuple[Operation, ...]:
    """Return every operation of a server: those of its API, and those of the bus inside it."""
    return tuple(route.operation for route in (*surface, *BUS_ROUTES))


def write_credentials(data: Path, credentials: Credentials) -> Path:
    """Store the first key where the command line finds it."""
    path = data / CREDENTIALS
    replace_file(path, msgspec.json.format(msgspec.json.encode(credentials)) + b"\n", 0o600)
    return path


def _signing_failed(failure: RedKeyError) -> None:
    _log.error("a checkpoint could not be signed", code=failure.code, reason=failure.message)
