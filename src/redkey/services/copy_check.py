"""Compare a copy of a ledger with its source: the hash chain, the tree, and everything beside the records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from redkey.errors import CopyRefused
from redkey.ledger.chain import verify_records
from redkey.ledger.merkle import Edge
from redkey.ledger.record import EMPTY_HEAD
from redkey.ledger.tail import records_after
from redkey.services.fsck.evidence import Evidence
from redkey.services.ledger_copy import ROW_KINDS, Progress, all_counters, all_rows
from redkey.services.log_facts import NOT_COPIED


def compare(source: Evidence, copy: Evidence, progress: Progress | None = None) -> None:
    """Raise CopyRefused at the first difference between two ledgers."""
    if (topics := list(source.topics())) != list(copy.topics()):
        raise _differs("the topics differ")
    if _settings(source) != _settings(copy):
        raise _differs("the settings differ")
    total, done = sum(source.head(topic).sequence for topic in topics), 0
    for topic in topics:
        for count in _compare_records(source, copy, topic):
            done += count
            if progress is not None:
                progress(done, total)
        _compare_beside(source, copy, topic)


def _compare_records(source: Evidence, copy: Evidence, topic: str) -> Iterator[int]:
    """Hash the records of the copy again, and compare each with its source; yield the number compared."""
    head, edge = EMPTY_HEAD, Edge()
    originals = (record for batch in records_after(source, topic, 0) for record in batch)
    for batch in records_after(copy, topic, 0):
        head, damages = verify_records(head, edge, batch)
        if damages:
            raise _differs(f"record {damages[0].sequence} of topic {topic}: {damages[0].message}")
        for record in batch:
            if next(originals, None) != record:
                raise _differs(f"record {record.sequence} of topic {topic} is not the source's")
        yield len(batch)
    if next(originals, None) is not None or copy.head(topic) != source.head(topic):
        raise _differs(f"topic {topic} does not end where the source ends")
    if not copy.tree(topic).root() == source.tree(topic).root() == edge.root():
        raise _differs(f"the tree of topic {topic} has another root")


def _compare_beside(source: Evidence, copy: Evidence, topic: str) -> None:
    for kind in ROW_KINDS:
        for one, other in zip_longest(all_rows(source, topic, kind), all_rows(copy, topic, kind)):
            if one != other:
                raise _differs(f"the row {kind} {(one or other).key!r} of topic {topic} differs")
    if all_counters(source, topic) != all_counters(copy, topic):
        raise _differs(f"the counters of topic {topic} differ")
    for left, right in zip_longest(source.checkpoints_up(topic), copy.checkpoints_up(topic)):
        if left != right:
            raise _differs(f"the checkpoints of topic {topic} differ at size {(left or right)[0]}")
    bodies = (body for body in source.bodies(topic) if not body.erased)
    copies = (body for body in copy.bodies(topic) if not body.erased)
    for body, copied in zip_longest(bodies, copies):
        if body != copied or copied.found != (copied.size, copied.sha256):
            raise _differs(f"the content {(body or copied).sha256} of topic {topic} differs")


def _settings(evidence: Evidence) -> dict[str, str]:
    return {name: value for name, value in evidence.settings().items() if name not in NOT_COPIED}


def _differs(what: str) -> CopyRefused:
    text = f"the copy differs from its source: {what}; stop what writes to either, and run the command again"
    return CopyRefused(text, code="copy_differs")
