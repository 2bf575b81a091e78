"""The caller: who asks, in which workspace, under which idempotency key; and the way from a use case to the ledger.

Every door makes one for a request and hands it to a use case (`redkey.services.use_case`).
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

# What is larger is worked on beside the event loop.
LARGE_BYTES = 16 * 1024
# How long it rests after each step while several workspaces write, in times of the step.
_REST = 2
# Stands in a command whose content is yet to come, or was recorded before.
NO_CONTENT = Ref(bytes=0, sha256="")

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Pending(msgspec.Struct, Generic[T_co], frozen=True, gc=False):
    """A command to be recorded, and how its outcome becomes the reply.

    The reply is made inside the unit, at the command's place, and given once the unit is durable.
    """

    command: Command
    reply: Callable[[Outcome, Place], T_co]
    contents: tuple[Content, ...] = ()
    wait_seconds: float = 0
    # Tells the commands of a batch apart.
    part: str = ""
    # Another workspace than the caller's own, for operators.
    topic: str = ""


# What a use case may give: its reply, or how to come to it.
Result: TypeAlias = T | Pending[T] | Coroutine[Any, Any, T | Pending[T]]


class Caller:
    """Who asks, and under which key."""

    # Known once a door has authenticated the request.
    actor: Actor
    principal: Principal
    topic: str
    # How large the request is.
    body_bytes = 0
    _idem = _body_hash = ""
    # True when the reply tells something that the records of the request do not.
    is_unrecorded = False

    def __init__(self, means: Means) -> None:
        self.means = means

    def authenticated(self, principal: Principal) -> None:
        """Act for the holder of a key or token."""
        self.actor, self.topic, self.principal = principal.actor, principal.topic, principal

    # Requests that are sent again under their key.

    def identify(self, operation: Operation, key: str, target: bytes, body: bytes) -> None:
        """Bind the request to its idempotency key: who asks, for which operation, with what."""
        scope = f"{operation.method} {operation.path}"
        self.is_unrecorded = operation.repeats == "bytes"
        self._idem = sha256(f"{self.actor.key_id}\n{scope}\n{key}".encode()).hexdigest()[:32]
        # The path is part of what is asked for: the same key for another task is another request.
        self._body_hash = sha256(target + b"\n" + body).hexdigest()[:16]

    def explain_reuse(self, refused: Refused, ids: Collection[str]) -> Refused:
        """Tell a key that was used at another path from one that was used with another body.

        `ids` are the parameters of this path: the record of the first request names its own.
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
        """The hashes of the request's idempotency key and body; empty when it came without a key."""
        return self._idem, self._body_hash

    @property
    def is_repeat(self) -> bool:
        """True when this request was recorded before: its answer is on the ledger already."""
        return bool(self._idem) and self._idem in self.means.coordinator.peek(self.topic).done

    def answers_beside_records(self, refused: Refused) -> None:
        """The reply tells that one part of a batch was refused, which is not on the ledger.

        A part whose key has expired was done with its batch: then the whole batch is refused.
        """
        if refused.code == KEY_EXPIRED:
            raise refused
        self.is_unrecorded = True

    def take(self, outcome: Outcome, part: str = "") -> Outcome:
        """See whether an outcome is on record under the request's key; AnsweredBefore when its answer was kept."""
        if outcome.kept is not None:
            raise AnsweredBefore(outcome.kept)
        if self._idem and not outcome.is_recorded(self._idem_of(part) if part else self._idem):
            self.is_unrecorded = True
        return outcome

    # To the ledger.

    def enqueue(self, pending: Pending[Any], done: Done) -> Submission:
        """Submit the command of a pending reply; `done` gets its outcome."""
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
        )

    async def settled(self, pending: Pending[T]) -> T:
        """The reply of a pending command, once it is durable."""
        submission = self.means.coordinator.submit(
            pending.topic or self.topic,
            self.actor,
            pending.command,
            pending.contents,
            idem=self._idem_of(pending.part),
            body=self._body_hash,
            wait_seconds=pending.wait_seconds,
            reply=pending.reply,
        )
        if pending.wait_seconds:
            outcome = await self.while_authorised(self.while_here(submission))
        else:
            outcome = await submission
        reply: T = self.take(outcome, pending.part).reply
        return reply

    async def act(self, work: Callable[[Unit], T], topic: str = "") -> T:
        """The result of work that is no command, done in a unit of its own, once the unit is durable.

        The unit is of the caller's own topic unless another one is named.

        The unit looks at the caller's key once more: another process may have revoked it.
        """

        def checked(unit: Unit) -> T:
            check_visitor(unit, self.actor)
            return work(unit)

        return await self.means.coordinator.act(topic or self.topic, checked)

    async def reply(self, result: Result[T]) -> T:
        """The reply of a use case, whatever it gave."""
        if iscoroutine(result):
            result = await result
        if isinstance(result, Pending):
            return await self.settled(result)
        return result  # type: ignore[return-value]

    def _idem_of(self, part: str) -> str:
        if part and self._idem:
            return sha256(f"{self._idem}\n{part}".encode()).hexdigest()[:32]
        return self._idem

    # Waiting.

    async def while_here(self, work: Coroutine[Any, Any, T]) -> T:
        """What some work gives; doors that notice when a caller goes away end it then."""
        return await work

    async def while_authorised(self, work: Coroutine[Any, Any, T]) -> T:
        """What a long poll gives; Refused as soon as the caller's authority ends."""
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
        """Do what reads much beside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.means.threads, work)

    # Large requests.

    @property
    def is_large(self) -> bool:
        """True when work on the body would hold up others."""
        return self.body_bytes > LARGE_BYTES

    def charge(self, cost: int) -> None:
        """Let the caller pay for large work; Refused when it has to wait."""
        if cost:
            self.means.costs.charge(self.actor.key_id, self.topic, cost)

    async def beside(self, work: Callable[[], T]) -> T:
        """Do work on the body: in the thread for large ones, or at once."""
        if not self.is_large:
            return work()
        shared = self.means.coordinator.is_shared
        return await asyncio.get_running_loop().run_in_executor(self.means.heavy, _do, work, shared)

    # Free text, and what reducers decide by.

    def document(self, value: Mapping[str, Any]) -> tuple[Ref, Content]:
        """Free text as content: how the wire names it, and what is kept beside the ledger."""
        made = content.document(value, self.means.ids.nonce())
        return content.ref(made), made

    def structure(self, value: Mapping[str, Any]) -> tuple[Ref, Content]:
        """What reducers decide by, as pinned content."""
        made = content.structure(value)
        return content.ref(made), made


def authority_ended() -> Refused:
    """The key was revoked, the token ran out, or the agent may less than before."""
    return Refused(401, "invalid_token", "The key or token ended, or its agent may do less than before.")


def _do(work: Callable[[], T], shared: bool) -> T:
    """Work, and rest for a while where others wait for the interpreter: most of it is theirs."""
    begun = time.perf_counter()
    try:
        return work()
    finally:
        if shared:
            time.sleep(_REST * (time.perf_counter() - begun))
