"""Follow a topic by a mirror that is not trusted: every row is checked against the one before by its running hash.

The reader keeps its own place, a `Head`: the last sequence, time and running hash that it verified. A row that comes
again is dropped. A row that is missing, or whose bytes do not match its running hash, is asked for again; if it stays
so, the reader stops with a ProofRefused that names the row, and nothing after that row is returned.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from redkey.errors import ProofRefused
from redkey.hedera.mirror import PAGE, Mirror
from redkey.ledger.mirror import MirrorRow, parse_row
from redkey.ledger.record import EMPTY_HEAD, Head, Record
from redkey.ledger.running_hash import VERSION, chained

# How often a wrong page is asked for again before the reader gives up, and the pause between.
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2


class TopicReader:
    """Reads one topic in order, each message once, verified. Not safe to use from several threads."""

    def __init__(
        self,
        mirror: Mirror,
        topic: str,
        head: Head = EMPTY_HEAD,
        *,
        noticed: Counter[str] | None = None,
        pause_seconds: float = _PAUSE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`head` is where an earlier reader got to; the default is the beginning of the topic.

        `noticed` goes on counting what earlier readers noticed.
        """
        self._mirror, self._topic, self.head = mirror, topic, head
        self._pause, self._sleep = pause_seconds, sleep
        # What was noticed: `repeated`, `gap`, `changed` and `malformed` rows.
        self.noticed: Counter[str] = Counter() if noticed is None else noticed

    def read(self, limit: int = PAGE) -> list[Record]:
        """Return the next verified messages, at most one page; none if there are no more now."""
        problem = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._sleep(self._pause * attempt)
            rows = self._mirror.messages_after(self._topic, self.head.timestamp, limit)
            records, problem = self._verify(rows)
            if records or problem is None:
                # What came before a wrong row is verified; the next call asks for the rest.
                return records
        raise problem or ProofRefused(f"topic {self._topic} cannot be read")

    def _verify(self, rows: tuple[Mapping[str, Any], ...]) -> tuple[list[Record], ProofRefused | None]:
        """Check rows one after the other; return those that continue the topic, and what is wrong with the next one."""
        records: list[Record] = []
        for value in rows:
            place = f"topic {self._topic}, after message {self.head.sequence}"
            try:
                row = parse_row(value, place)
                if row.topic != self._topic:
                    raise ProofRefused(f"{place}: the row is of topic {row.topic}", code="mirror_changed")
                if row.sequence <= self.head.sequence:
                    self.noticed["repeated"] += 1
                    continue
                record = self._continued(row)
            except ProofRefused as refused:
                kind = {"mirror_gap": "gap", "mirror_changed": "changed"}.get(refused.code, "malformed")
                self.noticed[kind] += 1
                return records, refused
            self.head = Head(record.sequence, record.timestamp, record.running_hash)
            records.append(record)
        return records, None

    def _continued(self, row: MirrorRow) -> Record:
        name = f"topic {self._topic}, message {row.sequence}"
        if row.sequence != self.head.sequence + 1:
            text = f"{name} came after message {self.head.sequence}: the mirror {self._mirror.url} leaves messages out"
            raise ProofRefused(text, code="mirror_gap")
        if row.payer is None or row.version != VERSION:
            text = f"{name} has no payer or an unknown version of the running hash: it cannot be verified"
            raise ProofRefused(text, code="mirror_unverifiable")
        record, _ = chained(self.head, self._topic, row.payer, row.timestamp, row.message)
        if record.running_hash != row.running_hash or row.timestamp <= self.head.timestamp:
            text = f"{name} does not match its running hash: the mirror {self._mirror.url} shows changed bytes"
            raise ProofRefused(text, code="mirror_changed")
        return record
