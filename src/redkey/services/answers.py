"""Kept answers: what was answered under an idempotency key and cannot be told again from the ledger.

Most replies follow from the records of their request, and a repeat is told from these. A reply that nothing records
(there was no task, the caller holds it already, nothing changed) or that shows the state of its moment is kept as it
was sent: as a row beside the ledger, made durable before anybody is answered. It is kept as long as the ledger's own
window: a day, and at most so many a workspace. After that the row says only that the key was used, so that it is never
taken for a new one.

A row is read only where one may be: in workspaces that had some before this process came, and once another process
has written; else memory knows all keys.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import final

import msgspec

from redkey.commands.decision import Refused, key_expired, key_reused
from redkey.ledger.ports import Reader, Row, Unit
from redkey.readmodel.rows import ANSWER
from redkey.reducers.world import IDEMPOTENCY_LIMIT, IDEMPOTENCY_NANOSECONDS

_KEPT, _ERASED = "kept", "erased"
_COUNTER = "answers/kept"
_PAGE = 500
# Keys that memory knows; beyond them rows are read.
_KNOWN = 50_000
# How many old answers expire with each new one.
_EXPIRED = 4


class KeptAnswer(msgspec.Struct, frozen=True):
    """A reply as it was sent, to the request whose path and body have this hash."""

    body: str
    status: int
    media: str
    reply: bytes


@final
class KeepAnswer(msgspec.Struct, frozen=True):
    """A command of the server itself: keep this answer under the key of its request."""

    idem: str
    answer: KeptAnswer


class AnsweredBefore(Exception):
    """A unit found the answer that was given under the request's key: there is nothing left to do."""

    def __init__(self, kept: KeptAnswer) -> None:
        super().__init__("answered before")
        self.kept = kept


class StoredAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer as its row has it; without a reply it was erased, without the hash of a body it has expired."""

    body: str
    at: int = 0
    status: int = 0
    media: str = ""
    reply: str = ""


_decode = msgspec.json.Decoder(StoredAnswer).decode
_encode = msgspec.json.Encoder().encode
_USED = _encode(StoredAnswer(""))


class _TopicAnswers:
    """What is known of the kept answers of one topic; only the unit of the topic that runs may use it."""

    __slots__ = ("is_alone", "keys", "others")

    def __init__(self, others: int, *, is_alone: bool) -> None:
        # The keys that this process has kept answers under; whether others cannot have kept any.
        self.keys: set[str] = set()
        self.others, self.is_alone = others, is_alone


class Answers:
    """The kept answers of one store, as the coordinator asks for them inside its units."""

    def __init__(self) -> None:
        self._topics: dict[str, _TopicAnswers] = {}

    def find(self, unit: Unit, topic: str, idem: str, body: str) -> KeptAnswer | None:
        """The answer that was given under a key before; Refused when it was to another request."""
        known = self._topics.get(topic)
        if known is None:
            is_alone = not unit.rows(topic, ANSWER, limit=1)
            known = self._topics[topic] = _TopicAnswers(unit.others, is_alone=is_alone)
        elif known.others != unit.others:
            known.is_alone, known.others = False, unit.others
        return None if known.is_alone and idem not in known.keys else kept_answer(unit, topic, idem, body)

    def keep(self, unit: Unit, topic: str, command: KeepAnswer, now: int) -> KeptAnswer:
        """Keep an answer; the one that was kept first counts."""
        answer = command.answer
        before = self.find(unit, topic, command.idem, answer.body)
        if before is not None:
            return before
        stored = StoredAnswer(answer.body, now, answer.status, answer.media, b64encode(answer.reply).decode())
        unit.put_rows(topic, [Row(ANSWER, command.idem, _encode(stored), _KEPT, now)])
        unit.count(topic, [(_COUNTER, 1 - _expire_old(unit, topic, now))])
        known = self._topics[topic]
        if len(known.keys) >= _KNOWN:
            known.keys.clear()
            known.is_alone = False
        known.keys.add(command.idem)
        return answer

    def forget(self, topic: str) -> None:
        """A unit that may have kept something in the topic has failed: look again."""
        self._topics.pop(topic, None)


def kept_answer(reader: Reader, topic: str, idem: str, body: str) -> KeptAnswer | None:
    """The answer that a row keeps; Refused when it was to another request, was erased, or has expired."""
    row = reader.row(topic, ANSWER, idem)
    if row is None:
        return None
    stored = _decode(row.body)
    if not stored.body:
        raise key_expired()
    if stored.body != body:
        raise key_reused()
    if not stored.reply:
        raise answer_erased()
    return KeptAnswer(stored.body, stored.status, stored.media, b64decode(stored.reply))


def answer_erased() -> Refused:
    """The request was answered, and what the answer showed is not to be shown any more."""
    detail = "This request was answered before, and content that its answer may have shown was erased since."
    return Refused(410, "answer_erased", detail)


def erase_answers(unit: Unit, topic: str) -> None:
    """Content was erased, and an answer may have shown it: keep that there was one, and nothing of it."""
    while rows := unit.rows(topic, ANSWER, _KEPT, limit=_PAGE):
        unit.put_rows(topic, [_erased(row) for row in rows])


def _erased(row: Row) -> Row:
    stored = msgspec.structs.replace(_decode(row.body), media="", reply="")
    return Row(ANSWER, row.key, _encode(stored), _ERASED, row.position)


def _expire_old(unit: Unit, topic: str, now: int) -> int:
    """Let a few answers go that are out of the window, and keep their keys; how many."""
    count = dict(unit.counters(topic, _COUNTER)).get(_COUNTER, 0)
    oldest = [row for listed in (_ERASED, _KEPT) for row in unit.rows(topic, ANSWER, listed, limit=_EXPIRED)]
    surplus = max(0, count + 1 - IDEMPOTENCY_LIMIT)
    old = [
        row.key
        for index, row in enumerate(sorted(oldest, key=lambda row: row.position))
        if index < surplus or row.position <= now - IDEMPOTENCY_NANOSECONDS
    ]
    # In no list: nothing looks for them but a request with their key.
    unit.put_rows(topic, [Row(ANSWER, key, _USED) for key in old])
    return len(old)
