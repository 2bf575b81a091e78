"""A call: one request as a handler sees it, and the way from it to the write path."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from redkey.api.logins import Logins
from redkey.api.metrics import Metrics
from redkey.commands.caller import Caller
from redkey.commands.command import Command
from redkey.commands.decision import Refused
from redkey.config import Config
from redkey.http.costs import Costs
from redkey.http.exchange import Exchange
from redkey.http.limits import Limiter
from redkey.ledger import content
from redkey.ledger.ports import Clock, Content, SequencedStore
from redkey.services.answers import AnsweredBefore
from redkey.services.authority import Authority
from redkey.services.coordinator import Coordinator
from redkey.services.keys import KeyRing, Principal
from redkey.services.outcome import Outcome
from redkey.services.signing import Signing
from redkey.services.submission import Done, Submission
from redkey.services.subscriptions import Subscriptions
from redkey.services.tokens import Tokens
from redkey.wire.events import Ref

if TYPE_CHECKING:
    from redkey.api.adapter import Endpoint
    from redkey.http.route import Route

# What is larger is worked on beside the event loop.
LARGE_BYTES = 16 * 1024

T = TypeVar("T")


class Ids(Protocol):
    """Where ids and nonces come from."""

    def ulid(self) -> str: ...

    def nonce(self) -> bytes: ...


@dataclass(slots=True)
class Services:
    """What handlers work with; the composition root fills it."""

    store: SequencedStore
    coordinator: Coordinator
    clock: Clock
    ids: Ids
    config: Config
    metrics: Metrics
    keys: KeyRing
    tokens: Tokens
    signing: Signing
    subscriptions: Subscriptions
    authority: Authority
    limiter: Limiter
    costs: Costs
    logins: Logins
    threads: Executor
    # One thread for work on large bodies: however many come, they slow the loop as one does.
    heavy: Executor
    routes: tuple[Route, ...]
    # Who begins the next piece of a batch, while several workspaces write.
    batch_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Requests under an idempotency key that are being answered, where no unit would see the second one.
    flights: dict[tuple[str, str], asyncio.Future[None]] = field(default_factory=dict)


class Raw(msgspec.Struct, frozen=True):
    """A reply that is not the route's struct: bytes of some media type, another status, headers."""

    body: bytes
    media: str = "application/json"
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


# Stands in a command whose content is yet to come, or was recorded before.
NO_CONTENT = Ref(bytes=0, sha256="")


class Pending(msgspec.Struct, frozen=True, gc=False):
    """A command to be recorded, and how its outcome becomes the reply.

    A handler that returns one needs no coroutine: the adapter submits the command and replies when it is durable.
    """

    command: Command
    reply: Callable[[Outcome], Any]
    contents: tuple[Content, ...] = ()
    wait_seconds: float = 0
    # Tells the commands of a batch apart.
    part: str = ""


class Call:
    """One request."""

    __slots__ = (
        "_body_hash",
        "_idem",
        "_unrecorded",
        "begun",
        "body_bytes",
        "caller",
        "endpoint",
        "exchange",
        "path",
        "principal",
        "query",
        "services",
        "told",
        "topic",
    )

    # Who calls, in which workspace, with which parameters of the path: known once the adapter has admitted it.
    caller: Caller
    principal: Principal
    topic: str
    path: dict[str, str]

    def __init__(self, services: Services, exchange: Exchange, endpoint: Endpoint, begun: float) -> None:
        """`begun` is when the request came."""
        self.services, self.exchange, self.endpoint, self.begun = services, exchange, endpoint, begun
        # Further headers of the reply.
        self.told: list[tuple[bytes, bytes]] = []
        self.query: Any = None
        self._idem = self._body_hash = ""
        self._unrecorded = False
        self.body_bytes = 0

    def identify(self, key: str, target: bytes, body: bytes) -> None:
        """Bind the request to its idempotency key: who asks, for which operation, with what."""
        route = self.endpoint.route
        scope = f"{self.caller.key_id}\n{route.method} {route.path}\n{key}"
        self._idem = sha256(scope.encode()).hexdigest()[:32]
        # The path is part of what is asked for: the same key for another task is another request.
        self._body_hash = sha256(target + b"\n" + body).hexdigest()[:16]

    @property
    def identity(self) -> tuple[str, str]:
        """The hashes of the request's idempotency key and body; empty when it came without a key."""
        return self._idem, self._body_hash

    @property
    def is_repeat(self) -> bool:
        """True when this request was recorded before: its answer is on the ledger already."""
        return bool(self._idem) and self._idem in self.services.coordinator.peek(self.topic).done

    @property
    def is_told_by_records(self) -> bool:
        """True when the records of this request give its reply again, byte for byte, whenever it is repeated."""
        return self.endpoint.route.repeats != "bytes" and not self._unrecorded

    def answers_beside_records(self) -> None:
        """The reply tells something that is not on the ledger, such as the refusal of one part of a batch."""
        self._unrecorded = True

    def take(self, outcome: Outcome, part: str = "") -> Outcome:
        """See whether an outcome is on record under the request's key; AnsweredBefore when its answer was kept."""
        if outcome.kept is not None:
            raise AnsweredBefore(outcome.kept)
        if self._idem and not outcome.is_recorded(self._idem_of(part)):
            self._unrecorded = True
        return outcome

    def enqueue(self, pending: Pending, done: Done) -> Submission:
        """Submit the command of a pending reply; `done` gets its outcome."""
        return self.services.coordinator.enqueue(
            self.topic,
            self.caller,
            pending.command,
            pending.contents,
            done,
            idem=self._idem_of(pending.part),
            body=self._body_hash,
            wait_seconds=pending.wait_seconds,
        )

    async def settled(self, pending: Pending) -> Any:
        """The reply of a pending command, once it is durable."""
        submission = self.services.coordinator.submit(
            self.topic,
            self.caller,
            pending.command,
            pending.contents,
            idem=self._idem_of(pending.part),
            body=self._body_hash,
            wait_seconds=pending.wait_seconds,
        )
        if pending.wait_seconds:
            outcome = await self.while_authorised(self.exchange.while_connected(submission))
        else:
            outcome = await submission
        return pending.reply(self.take(outcome, pending.part))

    async def submit(
        self, command: Command, contents: Sequence[Content] = (), *, part: str = "", topic: str = ""
    ) -> Outcome:
        """The durable outcome of a command of this request.

        `part` tells the commands of a batch apart; `topic` is another workspace than the caller's own, for operators.
        """
        outcome = await self.services.coordinator.submit(
            topic or self.topic, self.caller, command, tuple(contents), idem=self._idem_of(part), body=self._body_hash
        )
        return self.take(outcome, part)

    def _idem_of(self, part: str) -> str:
        if part and self._idem:
            return sha256(f"{self._idem}\n{part}".encode()).hexdigest()[:32]
        return self._idem

    async def while_authorised(self, work: Coroutine[Any, Any, T]) -> T:
        """What a long poll gives; Refused as soon as the caller's authority ends."""
        task, ended = asyncio.ensure_future(work), False

        def end() -> None:
            nonlocal ended
            ended = True
            task.cancel()

        release = self.services.authority.hold(self.principal, end)
        try:
            return await task
        except asyncio.CancelledError:
            if ended:
                raise authority_ended() from None
            raise
        finally:
            release()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do what reads much beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.services.threads, work)

    @property
    def is_large(self) -> bool:
        """True when work on the body would hold up others."""
        return self.body_bytes > LARGE_BYTES

    def charge(self, cost: int) -> None:
        """Let the caller pay for large work; Declined when it has to wait."""
        if cost:
            self.services.costs.charge(self.caller.key_id, self.topic, cost)

    async def beside(self, work: Callable[[], T]) -> T:
        """Do work on the body: in the thread for large ones, or at once."""
        if not self.is_large:
            return work()
        shared = self.services.coordinator.is_shared
        return await asyncio.get_running_loop().run_in_executor(self.services.heavy, _do, work, shared)

    def accepts(self, media: bytes) -> bool:
        """True when the caller asks for this media type by name."""
        return media in self.exchange.headers.get(b"accept", b"")

    def document(self, value: Mapping[str, Any]) -> tuple[Ref, Content]:
        """Free text as content: how the wire names it, and what is kept beside the ledger."""
        made = content.document(value, self.services.ids.nonce())
        return content.ref(made), made

    def structure(self, value: Mapping[str, Any]) -> tuple[Ref, Content]:
        """What reducers decide by, as pinned content."""
        made = content.structure(value)
        return content.ref(made), made


def authority_ended() -> Refused:
    """The key was revoked, the token ran out, or the agent may less than before."""
    return Refused(401, "invalid_token", "The key or token ended, or its agent may do less than before.")


def _do(work: Callable[[], T], shared: bool) -> T:
    """Work, and rest as long as it took where others wait for the interpreter."""
    begun = time.perf_counter()
    try:
        return work()
    finally:
        if shared:
            time.sleep(time.perf_counter() - begun)
