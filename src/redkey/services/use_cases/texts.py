"""Free text as it comes in: searched for secrets, then made a document beside the ledger.

A record cannot be deleted, so a text with a secret is refused, not shortened: the caller learns where the secret is and
what it looks like, and nothing of the request is kept. A queue may allow secrets, for work that is about them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from itertools import islice
from typing import Any, TypeVar

from redkey.commands.decision import Refused
from redkey.ledger.ports import Content
from redkey.ledger.secrets import Secret, find_secrets
from redkey.readmodel.rows import entity
from redkey.services.caller import Caller, Pending
from redkey.wire.events import Ref

T = TypeVar("T")
Then = Callable[[Ref, Content], Pending[T]]
# How many secrets are reported at most.
_REPORTED = 100


def keep(
    caller: Caller, value: Mapping[str, Any], *, queue_id: str = "", claim_id: str = "", under: str = ""
) -> tuple[Ref, Content]:
    """Return text as a document: its reference for wires, and its bytes. `under` is the place of the value in the
    request.
    """
    refuse_secrets(caller, value, queue_id=queue_id, claim_id=claim_id, under=under)
    return caller.document(value)


def keep_then(
    caller: Caller, value: Mapping[str, Any], then: Then[T], **where: str
) -> Pending[T] | Coroutine[Any, Any, Pending[T]]:
    """Store text and continue with it: at once, or beside the event loop if the body is large."""
    if caller.is_large:
        return _beside_then(caller, value, then, where)
    return then(*keep(caller, value, **where))


async def _beside_then(caller: Caller, value: Mapping[str, Any], then: Then[T], where: dict[str, str]) -> Pending[T]:
    return then(*await keep_beside(caller, value, **where))


async def keep_beside(
    caller: Caller, value: Mapping[str, Any], *, queue_id: str = "", claim_id: str = "", under: str = ""
) -> tuple[Ref, Content]:
    """Do as `keep` does, for values that may be large: other callers are not delayed."""
    await refuse_secrets_beside(caller, value, queue_id=queue_id, claim_id=claim_id, under=under)
    return await caller.beside(lambda: caller.document(value))


async def refuse_secrets_beside(
    caller: Caller, value: object, *, queue_id: str = "", claim_id: str = "", under: str = ""
) -> None:
    """Do as `refuse_secrets` does, for values that may be large."""
    found = await caller.beside(lambda: _secrets(value))
    _refuse(caller, found, queue_id, claim_id, under)


def refuse_secrets(caller: Caller, value: object, *, queue_id: str = "", claim_id: str = "", under: str = "") -> None:
    """Refuse a value that holds a secret, unless the queue of the task allows secrets."""
    _refuse(caller, _secrets(value), queue_id, claim_id, under)


def _secrets(value: object) -> list[Secret]:
    return list(islice(find_secrets(value), _REPORTED))


def _refuse(caller: Caller, found: list[Secret], queue_id: str, claim_id: str, under: str) -> None:
    # A request that is recorded already is answered from its records.
    if not found or caller.is_repeat or _allows_secrets(caller, queue_id or _queue_of(caller, claim_id)):
        return
    detail = f"This looks like a secret ({found[0].pattern}); nothing of the request was kept."
    if len(found) > 1:
        detail = f"{len(found)} texts look like secrets, see errors; nothing of the request was kept."
    raise Refused(422, "secret_detected", detail, findings=[one.finding(under) for one in found])


def _allows_secrets(caller: Caller, queue_id: str) -> bool:
    row = caller.means.store.row(caller.topic, "queue", queue_id) if queue_id else None
    return row is not None and bool(entity(row).settings.allow_secrets)


def _queue_of(caller: Caller, claim_id: str) -> str:
    """Return the queue of the task that a claim holds; None if it holds nothing."""
    world = caller.means.coordinator.peek(caller.topic)
    task = world.tasks.get(world.claims.get(claim_id, ""))
    return task.queue_id if task is not None else ""
