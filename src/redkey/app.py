"""The composition root: the only place where the parts of a server are put together."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import structlog

from redkey.a2a.card import PATH as CARD_PATH
from redkey.a2a.door import PREFIX as A2A_PREFIX
from redkey.a2a.door import A2aDoor
from redkey.api.adapter import Api
from redkey.api.auth import Authenticator
from redkey.api.call import Services
from redkey.api.logins import Logins
from redkey.api.metrics import Metrics
from redkey.api.stream import frame
from redkey.api.surface import routes
from redkey.bus.attached import AttachedBus
from redkey.bus.http.call import BusCaller
from redkey.bus.http.face import BUS_ROUTES
from redkey.bus.http.origin import KnownHosts
from redkey.commands.actor import Actor
from redkey.commands.registry import CreateKey
from redkey.config import CREDENTIALS, Config, Credentials
from redkey.errors import BusRefused, ConfigRefused, KeyRefused, RedKeyError
from redkey.http.exchange import Exchange
from redkey.http.limits import Limiter
from redkey.http.problems import Declined
from redkey.http.route import Route
from redkey.ledger.checkpoint import log_name
from redkey.ledger.note import parse_key
from redkey.ledger.trust import TrustedKey, witness_keys
from redkey.mcp.door import PATH as MCP_PATH
from redkey.mcp.door import McpDoor
from redkey.services.authority import Authority
from redkey.services.caller import Caller
from redkey.services.coordinator import Coordinator
from redkey.services.costs import Costs
from redkey.services.counting import Counting
from redkey.services.keys import KEY_SHAPE, KEY_TEXT, KeyRing, digest_of
from redkey.services.login_codes import LoginCodes
from redkey.services.notices import Notices
from redkey.services.outbox import Means as OutboxMeans
from redkey.services.outbox import Outbox
from redkey.services.recovery import FIRST_KEY_SCOPES
from redkey.services.signing import SigningSchedule
from redkey.services.struct_types import build_struct_types
from redkey.services.subscriptions import Subscriptions
from redkey.services.timers import Timers
from redkey.services.tokens import Tokens
from redkey.services.witnessing import Courier, Witnessing
from redkey.services.workspaces import begin_directly, workspaces
from redkey.shapes.operation import Operation
from redkey.stores.clock import SystemClock
from redkey.stores.durable import OneHolder, locked, replace_file
from redkey.stores.ids import SystemIds
from redkey.stores.keys import SignerKeys, issuing_secret
from redkey.stores.opening import open_memory, open_signing, open_store
from redkey.studio.door import StudioDoor

_log = structlog.get_logger("redkey.app")
# Threads for queries and receipts: enough that one long query does not hold up the others.
_THREADS = 4
Door = Callable[[Exchange], Coroutine[Any, Any, None] | None]


class App:
    """One server: its parts, from the first request to the last."""

    def __init__(self, config: Config, on_fatal: Callable[[BaseException], None]) -> None:
        self.config = config
        build_struct_types()
        self.store = open_store(config.data)
        try:
            self._build(on_fatal)
        except BaseException:
            self.store.close()
            raise

    def _build(self, on_fatal: Callable[[BaseException], None]) -> None:
        config, store, ids = self.config, self.store, SystemIds()
        self.signing = open_signing(store)
        self.keys = KeyRing(store, issuing_secret(store.keys_directory), time.monotonic)
        # Servers that start together on a new data directory begin one workspace, not one each.
        with locked(config.data / "first.lock"):
            self.workspace_id, self.first_key = self._first_workspace(ids)
        self.metrics = Metrics()
        self.coordinator = Coordinator(store, ids, on_fatal=on_fatal)
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
        # Who may not look any more must not see what came after that: authority before subscriptions.
        self.authority = Authority(store, time.time)
        for listener in (
            self.keys.on_commit,
            self.authority.on_commit,
            self.subscriptions.hear,
            self._schedule.heard,
            self._counting.heard,
            self._count,
        ):
            self.coordinator.listen(listener)
        clock = SystemClock()
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
        self._open_doors(ids, clock, on_fatal)

    def _open_doors(self, ids: SystemIds, clock: SystemClock, on_fatal: Callable[[BaseException], None]) -> None:
        """Build what callers reach: the use cases with all they need, the HTTP API and the bus."""
        config, store = self.config, self.store
        name = log_name(self.signing.log.log_id)
        signers = SignerKeys(store.keys_directory / "oauth", f"{name}/oauth").signers()
        self.tokens = Tokens(signers, self.keys, config.public_url, name, time.time, ids.ulid)
        limiter = Limiter(config.rate, time.monotonic)
        logins = Logins(config.logins, time.monotonic, self.metrics)
        surface = tuple(routes(open_metrics=config.open_metrics))
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
            scratch_store=open_memory,
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
                alone=OneHolder(config.data / "outbox.lock"),
            )
        )
        self.coordinator.listen(self._outbox.heard)
        self._authenticator = Authenticator(self.keys, self.tokens, limiter, logins)
        self.api = Api(surface, self.services, self._authenticator, self.metrics)
        self.a2a = A2aDoor(self.services, self._authenticator, self.workspace_id)
        hosts = KnownHosts((urlsplit(config.public_url).hostname or "", config.host), addresses=True)
        # Where this server listens, once it does; tools of /mcp call it there.
        self.url = config.public_url
        studio = StudioDoor()
        self._mcp = McpDoor(lambda: self.url, partial(_check_host, hosts), self._admit_to_mcp)
        self._bus = AttachedBus(
            config.data.absolute() / "bus",
            self.workspace_id,
            self._admit_to_bus,
            hosts,
            Notices(store, self.subscriptions),
            on_fatal,
        )
        # By the first part of a path, or by the whole of it; every other path is the API's.
        self._doors: dict[str, Door] = {
            MCP_PATH: self._mcp,
            "api": self._bus,
            A2A_PREFIX.removeprefix("/"): self.a2a,
            CARD_PATH: self.a2a,
            "studio": studio,
            "/": studio,
        }
        self.metrics.gauge("requests_open", "Requests that are being answered.", lambda: self.api.open)

    def _call_witnesses(self) -> None:
        # Few servers have witnesses, and an HTTP client is dear to import.
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

    def __call__(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        path = exchange.path
        door = self._doors.get(path[1:].partition("/")[0]) or self._doors.get(path, self.api)
        return door(exchange)

    def login_link(self, key: str) -> str:
        """A link that opens the Studio once, with the rights of a key; empty if the key is not valid."""
        principal = self.keys.authenticate(key)
        return "" if principal is None else f"{self.url}/studio/#code={self.services.login_codes.make(principal)}"

    def _admit_to_mcp(self, headers: Mapping[bytes, bytes], address: str) -> str:
        """The agent whose key or token a request carries; empty for other keys."""
        principal, _ = self._authenticator.admit(headers, address, looks=False)
        return principal.actor.agent_id

    def _admit_to_bus(self, exchange: Exchange) -> BusCaller:
        """The holder of a key as the bus knows it: in its workspace, and an agent's key for that agent alone."""
        looks, address = exchange.method in ("GET", "HEAD"), exchange.connection.address
        try:
            principal, _ = self._authenticator.admit(exchange.headers, address, looks=looks)
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
        """Begin what runs beside the requests."""
        # Receipts are made in threads and may need a checkpoint: it passes the coordinator too.
        self.signing.pass_through(self.coordinator.act_from_thread(asyncio.get_running_loop()))
        self._timers.start()
        self._witnessing.start()
        self._outbox.start()
        for topic in self.store.topics():
            # A process that died may have left records that no checkpoint covers.
            self._schedule.heard(topic, ())
            self._counting.heard(topic, ())
        await self._bus.start()
        await self.a2a.start()

    def begin_stop(self) -> None:
        """Answer those who wait, end those who follow."""
        self.coordinator.begin_stop()
        self.subscriptions.begin_stop()
        self._bus.begin_stop()

    async def finish_stop(self) -> None:
        """Let what was taken be recorded, sign it, and give the data directory back."""
        await self._bus.stop()
        await self.a2a.stop()
        await self._outbox.stop()
        await self._mcp.stop()
        await self._timers.stop()
        await self._witnessing.stop()
        await self.coordinator.stop()
        # Not on the loop: a thread may wait for it to do an act.
        await asyncio.to_thread(self._threads.shutdown)
        self._heavy.shutdown()
        await self._schedule.stop()
        await self._counting.stop()
        self.store.close()

    def _first_workspace(self, ids: SystemIds) -> tuple[str, str | None]:
        """The first workspace, begun when there is none; its key only then, or when it is the preset one."""
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
        routes = self.config.new_block_routes
        # Whoever starts a server has one key: it must be able to pass the gates of its own plans.
        begun = begin_directly(self.store, ids, self.signing, nobody, create, block_routes=routes, self_approval=True)
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
    """Every operation of a server: those of its API, and those of the bus inside it."""
    return tuple(route.operation for route in (*surface, *BUS_ROUTES))


def write_credentials(data: Path, credentials: Credentials) -> Path:
    """Keep the first key where the command line finds it."""
    path = data / CREDENTIALS
    replace_file(path, msgspec.json.format(msgspec.json.encode(credentials)) + b"\n", 0o600)
    return path


def _signing_failed(failure: RedKeyError) -> None:
    _log.error("a checkpoint could not be signed", code=failure.code, reason=failure.message)
