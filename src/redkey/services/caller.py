"""The caller of a request: who asks, in which workspace, under which idempotency key; and its way to the ledger.

Every interface (API, A2A, MCP, bus) creates one for each request and passes it to a use case (`use_case`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
from hashlib import sha256
from inspect import iscoroutine
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from redkey.commands.actor import Actor
from redkey.commands.command import Command
from redkey.commands.decision import KEY_EXPIRED, KEY_REUSED, Refused
from redkey.ledger import content
from redkey.ledger.ports import Content, Unit
from redkey.ledger.secrets import find_secret
from redkey.services.answers import AnsweredBefore
from redkey.services.keys import Principal
from redkey.services.means import Means
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.services.submission import Done, Submission
from redkey.services.workspaces import check_visitor
from redkey.shapes.operation import Operation
from redkey.wire.envelope import wire_of
from redkey.wire.events import Ref
from redkey.wire.ids import event_id
from redkey.wire.validate import MESSAGE_LIMIT, WIRE_TOO_LARGE

# Larger bodies are processed beside the event loop.
LARGE_BYTES = 16 * 1024
# How long it pauses after each step while several workspaces write, as a multiple of the step.
_REST = 2
# A placeholder in a command for content that does not exist yet, or was recorded before.
NO_CONTENT = Ref(bytes=0, sha256="")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Pending(msgspec.Struct, Generic[T_co], frozen=True, gc=False):
    """A command to record, and the function that makes its outcome the reply.

    The reply is made inside the unit, at the command's place, and sent once the unit is durable.
    """

    command: Command
    reply: Callable[[Outcome, Place], T_co]
    contents: tuple[Content, ...] = ()
    wait_seconds: float = 0
    # The part of a batch that this command is.
    part: str = ""
    # The workspace of the command, if it is not the caller's own; for operators.
    topic: str = ""
    # Extensions of this part of a batch; None takes the caller's.
    extensions: dict[str, Any] | None = None


# What a use case may return: its reply, or a way to get it.
Result: TypeAlias = T | Pending[T] | Coroutine[Any, Any, T | Pending[T]]


class Caller:
    """A caller, and the idempotency key of its request."""

    # Set once the request is authenticated.
    actor: Actor
    principal: Principal
    topic: str
    # The size of the request in bytes.
    body_bytes = 0
    # The IP address of the caller; empty if the interface does not know it.
    address = ""
    _idem = _body_hash = ""
    # True if the reply shows something that the records of the request do not.
    is_unrecorded = False
    # Extensions of the request: stored on its wire, and returned with its event.
    extensions: dict[str, Any] | None = None

    def __init__(self, means: Means) -> None:
        self.means = means

    def authenticated(self, principal: Principal) -> None:
        """Set the holder of the key or token."""
        self.actor, self.topic, self.principal = principal.actor, principal.topic, principal

    # Repeated requests.

    def identify(self, operation: Operation, key: str, target: bytes, body: bytes) -> None:
        """Bind the request to its idempotency key: caller, operation and body."""
        scope = f"{operation.method} {operation.path}"
        self.is_unrecorded = operation.repeats == "bytes"
        self._idem = sha256(f"{self.actor.key_id}\n{scope}\n{key}".encode()).hexdigest()[:32]
        # The path is part of the request: the same key for another task is another request.
        self._body_hash = sha256(target + b"\n" + body).hexdigest()[:16]

    def explain_reuse(self, refused: Refused, ids: Collection[str]) -> Refused:
        """Return the refusal of a reused key: it was used at another path, or with another body.

        `ids` are the parameters of this path; the record of the first request has its own.
        """
        done = self.means.coordinator.peek(self.topic).done.get(self._idem)
        if refused.code != KEY_REUSED or done is None:
            return refused
        (record,) = self.means.store.read(self.topic, done.sequence - 1, 1)
        wire = wire_of(record.wire)
        text = record.wire.decode()
        if all(one in text for one in ids):
            return refused
        detail = f"This idempotency key was used at another path before (event {event_id(wire.wire_id)})."
        return Refused(422, KEY_REUSED, f"{detail} Use a new key for each request.")

    @property
    def identity(self) -> tuple[str, str]:
        """Return the hashes of the request's idempotency key and body; empty if it came without a key."""
        return self._idem, self._body_hash

    @property
    def is_repeat(self) -> bool:
        """True if this request was recorded before: its reply follows from the ledger."""
        return bool(self._idem) and self._idem in self.means.coordinator.peek(self.topic).done

    def answers_beside_records(self, refused: Refused) -> None:
        """Keep the reply, because a part of a batch was refused. A part with an expired key refuses the whole batch."""
        if refused.code == KEY_EXPIRED:
            raise refused
        self.is_unrecorded = True

    def take(self, outcome: Outcome, part: str = "") -> Outcome:
        """Check whether an outcome is recorded under the request's key; AnsweredBefore if its reply was kept."""
        if outcome.kept is not None:
            raise AnsweredBefore(outcome.kept)
        if self._idem and not outcome.is_recorded(self._idem_of(part) if part else self._idem):
            self.is_unrecorded = True
        return outcome

    # Writing to the ledger.

    def extended(self, extensions: dict[str, Any] | None, under: str = "") -> dict[str, Any] | None:
        """Return the extensions if they may be recorded; Refused if they hold a secret, because a wire cannot be
        erased.
        """
        if extensions and len(msgspec.json.encode(extensions)) > MESSAGE_LIMIT:
            detail = f"A wire has {MESSAGE_LIMIT:,} bytes; send smaller extensions."
            raise Refused(422, WIRE_TOO_LARGE, detail, f"{under}/extensions")
        secret = find_secret(extensions) if extensions else None
        if secret is None or self.is_repeat:
            return extensions
        detail = f"This looks like a secret ({secret.pattern}); nothing of the request was kept."
        raise Refused(422, "secret_detected", detail, findings=[secret.finding(f"{under}/extensions")])

    def enqueue(self, pending: Pending[Any], done: Done) -> Submission:
        """Submit the command of a pending reply; call `done` with its outcome."""
        return self.means.coordinator.enqueue(
            pending.topic or self.topic,
            self.actor,
            pending.command,
            pending.contents,
            done,
            idem=self._idem_of(pending.part) if pending.part else self._idem,
            body=self._body_hash,
            wait_seconds=pending.wait_seconds,
            reply=pending.reply,
            extensions=pending.extensions or self.extensions,
        )

    async def settled(self, pending: Pending[T]) -> T:
        """Return the reply of a pending command, once it is durable."""
        submission = self.means.coordinator.submit(
            pending.topic or self.topic,
            self.actor,
            pending.command,
            pending.contents,
            idem=self._idem_of(pending.part),
            body=self._body_hash,
            wait_seconds=pending.wait_seconds,
            reply=pending.reply,
            extensions=pending.extensions or self.extensions,
        )
        if pending.wait_seconds:
            outcome = await self.while_authorised(self.while_here(submission))
        else:
            outcome = await submission
        reply: T = self.take(outcome, pending.part).reply
        return reply

    async def act(self, work: Callable[[Unit], T], topic: str = "") -> T:
        """Run work that is not a command in a unit of its own; return its result once the unit is durable.

        The unit is of the caller's own topic unless `topic` names another, and checks the caller's key again.
        """

        def checked(unit: Unit) -> T:
            check_visitor(unit, self.actor)
            return work(unit)

        return await self.means.coordinator.act(topic or self.topic, checked)

    async def reply(self, result: Result[T]) -> T:
        """Return the reply of a use case, whatever kind of value the use case returned."""
        if iscoroutine(result):
            result = await result
        if isinstance(result, Pending):
            return await self.settled(result)
        return result  # type: ignore[return-value]

    def part_of(self, part: str) -> str:
        """Return the hash of the key of one part of this request; empty if the request came without a key."""
        return self._idem_of(part)

    def _idem_of(self, part: str) -> str:
        if part and self._idem:
            return sha256(f"{self._idem}\n{part}".encode()).hexdigest()[:32]
        return self._idem

    # Waiting.

    @property
    def reads_take_long(self) -> bool:
        """True if the store is across a network: then reads must run in a fiber."""
        return not self.means.store.inline

    async def while_here(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what some work returns. Interfaces that notice when a caller disconnects end it then."""
        return await work

    async def while_authorised(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a long poll; Refused as soon as the caller's authority ends."""
        task, ended = asyncio.ensure_future(work), False

        def end() -> None:
            nonlocal ended
            ended = True
            task.cancel()

        release = self.means.authority.hold(self.principal, end)
        try:
            return await task
        except asyncio.CancelledError:
            if ended:
                raise authority_ended() from None
            raise
        finally:
            release()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run work that reads a lot, beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.means.threads, work)

    # Large requests.

    @property
    def is_large(self) -> bool:
        """True if processing the body would delay other requests."""
        return self.body_bytes > LARGE_BYTES

    def charge(self, cost: int) -> None:
        """Charge the caller for large work; Refused if it has to wait."""
        if cost:
            self.means.costs.charge(self.actor.key_id, self.topic, cost)

    async def beside(self, work: Callable[[], T]) -> T:
        """Process the body: in the thread if it is large, else at once."""
        if not self.is_large:
            return work()
        shared = self.means.coordinator.is_shared
        return await asyncio.get_running_loop().run_in_executor(self.means.heavy, _do, work, shared)

    # Free text, and content that reducers decide by.

    def document(self, value: Mapping[str, Any]) -> tuple[Ref, Content]:
        """Turn free text into content: return its reference for the wire, and the content beside the ledger."""
        text = content.document(value, self.means.ids.nonce())
        return content.ref(text), text

    def structure(self, value: Mapping[str, Any]) -> tuple[Ref, Content]:
        """Turn data that reducers decide by into pinned content: return its reference for the wire, and the content."""
        pinned = content.structure(value)
        return content.ref(pinned), pinned


def authority_ended() -> Refused:
    """Return the refusal for a key that was revoked, a token that expired, or an agent that lost rights."""
    return Refused(401, "invalid_token", "The key or token ended, or its agent may do less than before.")


def _do(work: Callable[[], T], shared: bool) -> T:
    """Run work, then pause if other threads wait for the interpreter, so that they get most of the time."""
    begun = time.perf_counter()
    try:
        return work()
    finally:
        if shared:
            time.sleep(_REST * (time.perf_counter() - begun))
