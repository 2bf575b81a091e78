"""Kept replies: those sent under an idempotency key that cannot be made again from the ledger.

Most replies follow from the records of their request, and a repeat is answered from these. Some do not: nothing was
recorded (there was no task, the caller holds it already, nothing changed), or the reply shows a state at one moment.
These are kept as they were sent: as a row beside the ledger, durable before anyone gets the reply. They are kept as
long as the ledger's own window: a day, and up to a limit for each workspace. After that the row only says that the key
was used, so that the key never counts as new.

A row is read only if there may be one: in workspaces that had rows before this process started, and after another
process has written. Otherwise memory knows all keys.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import final

import msgspec

from redkey.commands.decision import Refused, key_expired, key_reused
from redkey.ledger.ports import Reader, Row, Unit
from redkey.ledger.prefetch import Prefetch
from redkey.readmodel.rows import ANSWER
from redkey.reducers.world import IDEMPOTENCY_LIMIT, IDEMPOTENCY_NANOSECONDS

_KEPT, _ERASED = "kept", "erased"
_COUNTER = "answers/kept"
_PAGE = 500
# Keys that memory knows; rows are read for older ones.
_KNOWN = 50_000
# How many old replies expire with each new one.
_EXPIRED = 4


class KeptAnswer(msgspec.Struct, frozen=True):
    """A reply as it was sent, and the hash of the path and body of its request."""

    body: str
    status: int
    media: str
    reply: bytes


@final
class KeepAnswer(msgspec.Struct, frozen=True):
    """A command of the server itself: keep this reply under the key of its request."""

    idem: str
    answer: KeptAnswer


class AnsweredBefore(Exception):
    """Raised in a unit that found the reply stored under the request's key: the request is done."""

    def __init__(self, kept: KeptAnswer) -> None:
        super().__init__("answered before")
        self.kept = kept


class StoredAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A kept reply as its row has it. Without a reply it was erased; without a body hash it has expired."""

    body: str
    at: int = 0
    status: int = 0
    media: str = ""
    reply: str = ""


_decode = msgspec.json.Decoder(StoredAnswer).decode
_encode = msgspec.json.Encoder().encode
_USED = _encode(StoredAnswer(""))


class _TopicAnswers:
    """What memory knows of the kept replies of one topic; only the topic's running unit may use it."""

    __slots__ = ("is_alone", "keys", "others")

    def __init__(self, others: int, *, is_alone: bool) -> None:
        # The keys that this process has kept replies under, and whether other processes cannot have kept any.
        self.keys: set[str] = set()
        self.others, self.is_alone = others, is_alone


class Answers:
    """The kept replies of one store, as the coordinator reads them inside its units."""

    def __init__(self) -> None:
        self._topics: dict[str, _TopicAnswers] = {}

    def find(self, unit: Unit, topic: str, idem: str, body: str) -> KeptAnswer | None:
        """Return the reply that was sent under a key before; Refused if it was to another request."""
        return kept_answer(unit, topic, idem, body) if self.may_have(unit, topic, idem) else None

    def may_have(self, unit: Unit, topic: str, idem: str) -> bool:
        """True if there may be a row for a key; in memory are only the keys of this process."""
        known = self._topics.get(topic)
        if known is None:
            is_alone = not unit.rows(topic, ANSWER, limit=1)
            known = self._topics[topic] = _TopicAnswers(unit.others, is_alone=is_alone)
        elif known.others != unit.others:
            known.is_alone, known.others = False, unit.others
        return not known.is_alone or idem in known.keys

    def keep(self, unit: Unit, topic: str, command: KeepAnswer, now: int) -> KeptAnswer:
        """Keep a reply; if there is one already, the first one stays."""
        answer = command.answer
        before = self.find(unit, topic, command.idem, answer.body)
        if before is not None:
            return before
        stored = StoredAnswer(answer.body, now, answer.status, answer.media, b64encode(answer.reply).decode())
        unit.put_rows(topic, [Row(ANSWER, command.idem, _encode(stored), _KEPT, now)])
        unit.count(topic, [(_COUNTER, 1)])
        known = self._topics[topic]
        if len(known.keys) >= _KNOWN:
            known.keys.clear()
            known.is_alone = False
        known.keys.add(command.idem)
        return answer

    def make_room(self, unit: Unit, topic: str, now: int, count: int) -> None:
        """Remove a few replies that are out of the window, but not their keys, before a unit keeps new ones."""
        before = dict(unit.counters(topic, _COUNTER)).get(_COUNTER, 0)
        oldest = [row for listed, limit in _oldest(count) for row in unit.rows(topic, ANSWER, listed, limit=limit)]
        surplus = max(0, before + count - IDEMPOTENCY_LIMIT)
        old = [
            row.key
            for index, row in enumerate(sorted(oldest, key=lambda row: row.position)[: _EXPIRED * count])
            if index < surplus or row.position <= now - IDEMPOTENCY_NANOSECONDS
        ]
        if old:
            # The row is in no list: only a request with its key looks for it.
            unit.put_rows(topic, [Row(ANSWER, key, _USED) for key in old])
            unit.count(topic, [(_COUNTER, -len(old))])

    @staticmethod
    def room_reads(count: int) -> Prefetch:
        """What `make_room` reads."""
        return Prefetch(counters=[_COUNTER], lists=[(ANSWER, listed, limit) for listed, limit in _oldest(count)])

    def forget(self, topic: str) -> None:
        """Forget what memory knows of a topic: a unit that may have kept something there has failed."""
        self._topics.pop(topic, None)


def kept_answer(reader: Reader, topic: str, idem: str, body: str) -> KeptAnswer | None:
    """Return the reply of a row; Refused if it was to another request, was erased, or has expired."""
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
    """Return the refusal of a request whose reply must not be shown any more."""
    detail = "This request was answered before, and content that its answer may have shown was erased since."
    return Refused(410, "answer_erased", detail)


def erase_answers(unit: Unit, topic: str) -> None:
    """Remove the replies that may show erased content; the rows still say that there was one."""
    while rows := unit.rows(topic, ANSWER, _KEPT, limit=_PAGE):
        unit.put_rows(topic, [_erased(row) for row in rows])


def _erased(row: Row) -> Row:
    stored = msgspec.structs.replace(_decode(row.body), media="", reply="")
    return Row(ANSWER, row.key, _encode(stored), _ERASED, row.position)


def _oldest(count: int) -> list[tuple[str, int]]:
    """The lists in which replies may have left the window, and how many to look at before `count` new ones."""
    return [(listed, _EXPIRED * count) for listed in (_ERASED, _KEPT)]
