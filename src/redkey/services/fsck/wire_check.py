"""The wires of one topic: valid, canonical, without gaps in their streams, found by the index, with the content they
name.

Memory does not grow with the history: the streams seen last are remembered, and the others are looked up in the event
index, which is itself checked against the records.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from redkey.errors import JsonRefused, StoreError, WireRefused
from redkey.ledger.network import is_projected
from redkey.readmodel.rows import WANTED
from redkey.services.fsck.evidence import Evidence, Stored
from redkey.services.fsck.report import Report
from redkey.services.log_facts import is_of_another_log, tell_term
from redkey.shapes.receipts import SignerTerm
from redkey.wire.envelope import AnyWire
from redkey.wire.events import (
    AnyPayload,
    CheckpointAnchored,
    ContentErased,
    KeyCreated,
    KeyRecovered,
    LedgerRestored,
    SignerAdded,
    SignerRetired,
    WorkspaceCreated,
)
from redkey.wire.ids import parse_stream
from redkey.wire.payload import content_refs, request_key
from redkey.wire.subjects import subjects
from redkey.wire.validate import encode, read_wire

Answer = TypeVar("Answer")

# How many streams are remembered with their last number, about 100 bytes each.
_STREAMS = 250_000
_PAGE = 500


class WireCheck:
    """Takes the wires of a topic in order, and keeps what the later checks need."""

    def __init__(self, evidence: Evidence, topic: str, report: Report, log_name: str, absent_until: int) -> None:
        self._evidence, self._topic, self._report = evidence, topic, report
        self._log_name = log_name
        # Records up to here were loaded without their content, according to the store.
        self._absent_until = absent_until
        self._streams: dict[int, int] = {}
        self._forgotten = False
        self._blind = self._told_unreadable = False
        self.terms: dict[str, SignerTerm] = {}
        self.restored: list[tuple[int, LedgerRestored]] = []
        self.anchored: list[tuple[int, CheckpointAnchored]] = []
        # By key id: the record that created a key, and the key's hash if the record has it.
        self.keys: dict[str, tuple[int, str]] = {}
        # The hashes in content.erased, and for each missing content the record that first names it.
        self._erased: set[str] = set()
        self._gone: dict[str, tuple[int, str, bool]] = {}
        self.workspace_id = ""
        # How many entries the event index must have; it covers complete blocks of records only.
        self.entries = 0
        head = self._asked(lambda: evidence.head(topic))
        self._indexed = evidence.index_complete(head.sequence if head is not None else 0)

    def take(self, stored: Stored) -> AnyWire | None:
        """Return the wire of a record; None if it was reported as invalid."""
        record = stored.record
        try:
            wire = read_wire(record.wire)
        except (JsonRefused, WireRefused) as refused:
            text = f"the wire is not valid at {refused.pointer or '/'}: {refused.message} [{refused.code}]"
            self._report.add("wire_invalid", text, self._topic, record.sequence)
            self.skip()
            return None
        if encode(wire)[0] != record.wire:
            self._report.add(
                "wire_not_canonical", "the wire is not in its canonical bytes", self._topic, record.sequence
            )
        self._check_index(stored, wire)
        self._check_stream(wire, record.sequence)
        self._check_content(wire.payload, record.sequence)
        self._keep(wire, record.sequence)
        return wire

    def _keep(self, wire: AnyWire, sequence: int) -> None:
        match wire.payload:
            case SignerAdded() | SignerRetired() as signer:
                if not is_of_another_log(signer, self._topic, self._log_name):
                    tell_term(self.terms, signer, sequence, self._log_name)
            case LedgerRestored() as restored:
                self.restored.append((sequence, restored))
            case CheckpointAnchored() as anchored:
                self.anchored.append((sequence, anchored))
            case KeyCreated() | KeyRecovered() as created:
                # The first record counts: another one with the same id is void.
                self.keys.setdefault(created.key_id, (sequence, created.key_hash or ""))
            case ContentErased() as erased:
                self._erased.add(erased.sha256)
            case WorkspaceCreated() if not self.workspace_id:
                self.workspace_id = parse_stream(wire.stream.stream_id).subject

    def _check_index(self, stored: Stored, wire: AnyWire) -> None:
        sequence = stored.record.sequence
        named = subjects(wire)
        if not self._evidence.indexes_keys and request_key(wire.payload) is not None:
            # The key is the last subject.
            named = named[:-1]
        if stored.wire_id != wire.wire_id or stored.subjects != named:
            text = "it is indexed under other ids than its wire has"
            self._report.add("index_wrong", text, self._topic, sequence)
        if sequence <= self._indexed:
            self.entries += 1 + len(set(stored.subjects))
            return
        first = self._asked(lambda: self._evidence.find(self._topic, wire.wire_id))
        if first is not None and first.sequence != sequence:
            text = f"the same wire is at {first.sequence} already"
            self._report.add("wire_repeated", text, self._topic, sequence)

    def skip(self) -> None:
        """Note a record without a readable wire: gaps after it may be its own."""
        self._blind = True

    def _asked(self, question: Callable[[], Answer]) -> Answer | None:
        """Return the store's answer; None if it has none, which is reported once."""
        try:
            return question()
        except StoreError as error:
            self._unreadable(error)
            return None

    def _unreadable(self, error: StoreError) -> None:
        if not self._told_unreadable:
            self._told_unreadable = True
            text = f"the index or the content cannot be read everywhere: {error.message}"
            self._report.add("database_damaged", text, self._topic)

    # Streams.

    def _check_stream(self, wire: AnyWire, sequence: int) -> None:
        if is_projected(self._topic):
            # Requests ordered by a network were numbered by servers that did not know of each other's requests.
            return
        stream_id, number = wire.stream.stream_id, wire.stream.stream_seq
        key = hash(stream_id)
        before = self._streams.pop(key, None)
        if before is None:
            before = 0
            if self._forgotten:
                before = self._asked(lambda: self._number_before(stream_id, sequence)) or 0
        if number != before + 1 and not (self._blind and number > before):
            text = f"it is number {number} of {stream_id}, expected {before + 1}"
            self._report.add("stream_gap", text, self._topic, sequence)
        self._streams[key] = number
        if len(self._streams) > _STREAMS:
            del self._streams[next(iter(self._streams))]
            self._forgotten = True

    def _number_before(self, stream_id: str, sequence: int) -> int:
        """Return the number of the last wire of a stream before this record, from the event index."""
        subject, before = parse_stream(stream_id).subject, sequence
        while records := self._evidence.events(self._topic, subject, before, _PAGE, newest_first=True):
            for record in records:
                if stream_id.encode() in record.wire:
                    stream = read_wire(record.wire).stream
                    if stream.stream_id == stream_id:
                        return stream.stream_seq
            if records[-1].sequence >= before:
                # The index names a record that is damaged; that is reported elsewhere.
                return 0
            before = records[-1].sequence
        return 0

    # Content.

    def _check_content(self, payload: AnyPayload, sequence: int) -> None:
        for name, ref in content_refs(payload):
            try:
                facts = self._evidence.body_facts(self._topic, ref.sha256)
            except StoreError as error:
                self._unreadable(error)
                return
            if facts is None and sequence <= self._absent_until and name not in STRUCTURE:
                self._report.figures["contents absent"] += 1
                continue
            if facts is None or facts[1]:
                self._gone.setdefault(ref.sha256, (sequence, name, facts is not None))
            if facts is not None and facts[0] != ref.bytes:
                text = f"the content {ref.sha256} has {facts[0]} bytes, its {name} says {ref.bytes}"
                self._report.add("content_size", text, self._topic, sequence)

    def finish(self) -> None:
        """Report missing content that no record says was erased, after all records were taken."""
        for sha256, (sequence, name, erased) in self._gone.items():
            if sha256 in self._erased:
                continue
            if self._asked(partial(self._evidence.row, self._topic, WANTED, sha256)) is not None:
                # Another organisation has it, and this server knows that it is missing here.
                self._report.figures["contents absent"] += 1
                continue
            code = "content_erased_unrecorded" if erased else "content_missing"
            told = "was erased, and no content.erased says so" if erased else "is not there"
            text = f"the content {sha256} that its {name} names {told}"
            self._report.add("structure_missing" if name in STRUCTURE else code, text, self._topic, sequence)


# Content that reducers decide by: never erased, always present.
STRUCTURE = frozenset({"structure_ref", "prices_ref"})
