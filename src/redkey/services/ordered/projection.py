"""The projection: writes what follows from the messages of a network's topic to an ordinary local topic.

For each message, in the order of the network:

    what has become due      by its consensus timestamp, each at the moment when it was due
    the message              with its own bytes, its own payer and its consensus timestamp
    its consequences         paid by the local payer, as in any local topic

Nothing else writes records there, and nothing else is read for it: no clock, no random numbers, no configuration. So
every reader of the same messages computes the same records and the same hashes. A message that is not allowed is void
with a reason; no message raises an error. The one thing that a reader may lack is structure that a wire of the log
names by hash: then the projection waits at that message and reports the hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, NoReturn

from redkey.commands.due import due, next_time
from redkey.errors import JsonRefused, RedKeyError, UpgradeNeeded, WireRefused
from redkey.ledger.network import check_next
from redkey.ledger.ports import Content, Entry, Row
from redkey.ledger.record import LOCAL_PAYER, Record
from redkey.readmodel.ingest import UNKNOWN_TYPE
from redkey.readmodel.rows import take_rows, void_row
from redkey.readmodel.structure import read, structure_ref
from redkey.reducers.event import event
from redkey.reducers.fold import fold
from redkey.reducers.parties import WIRE_INVALID, is_log, judge
from redkey.reducers.replay import DUPLICATE_WIRE
from redkey.services.answers import erase_answers
from redkey.services.ordered.bodies import want_bodies
from redkey.services.ordered.messages import put_cursor, put_message, read_cursor
from redkey.services.outcome import Settled
from redkey.services.unit_of_work import ROUNDS_LIMIT, BrokenInvariant, TopicWork
from redkey.wire.envelope import AnyWire
from redkey.wire.events import (
    CheckpointAnchored,
    ContentErased,
    KeyRecovered,
    LedgerRestored,
    SignerAdded,
    SignerRetired,
    WorkspaceCreated,
)
from redkey.wire.payload import content_refs, request_key
from redkey.wire.subjects import subjects
from redkey.wire.validate import encode, read_wire

# Parties, and so all of the projection, came with these rules.
ORDER_RULES = 2
# Why a message leaves no record, beside the reasons of `reducers.parties`: it says what only follows from others; its
# workspace is under rules without parties; the topic is retired; the same request came before, under its idempotency
# key; its structure is no JSON.
NOT_A_REQUEST, RULES_TOO_OLD, TOPIC_RETIRED = "not_a_request", "rules_too_old", "topic_retired"
DUPLICATE_REQUEST, STRUCTURE_REFUSED = "duplicate_request", "structure_refused"
# What servers state by themselves, as the sender `system`. Everything else of that sender follows from other records.
_FACTS = frozenset({SignerAdded, SignerRetired, KeyRecovered, LedgerRestored, CheckpointAnchored})


class StructureMissing(RedKeyError):
    """Raised if the next message names structure that is not in this store: fetch it from a server that has it."""

    code = "structure_missing"

    def __init__(self, sha256: str, sequence: int) -> None:
        super().__init__(f"Message {sequence} needs the structure {sha256}, which this server does not have yet.")
        self.sha256, self.sequence = sha256, sequence


class Projection(TopicWork):
    """One unit over the local topic of a workspace that a network orders."""

    def prepare(self) -> None:
        """Start where the last unit stopped reading the network's topic."""
        # The store's time, by which requests that are still to be ordered are decided.
        self._store_time = self._timestamp
        # The payers of this unit's records by their places, where it was not the local payer.
        self._payers: dict[int, str] = {}
        self._voids: list[Row] = []
        # The places of this unit's records by their wire ids.
        self._places: dict[str, int] = {}
        self.cursor = self._read_to = read_cursor(self._unit, self._topic)
        # Bodies that messages of this unit name.
        self._named: list[str] = []
        # Structure that is not in the store yet, and is stored once a message names it.
        self.at_hand: Mapping[str, Content] = {}

    def run_due(self) -> None:
        """Do nothing: time passes with the messages of the network."""

    def project(self, messages: Iterable[Record]) -> None:
        """Record messages that follow the ones read before, with all their consequences.

        StructureMissing at the first message that cannot be judged here yet; those before it stay projected.
        LedgerError if a message does not follow the last one.
        """
        try:
            for message in messages:
                head = check_next(self.cursor, message)
                self._pass_time(message.timestamp)
                self._take_message(message)
                self.cursor = head
        finally:
            self._timestamp = max(self._store_time, self._world.timestamp + 1)

    def finish(self) -> None:
        """Pass everything to the unit."""
        unit, topic = self._unit, self._topic
        if self.cursor != self._read_to:
            put_cursor(unit, topic, self.cursor)
        unit.put_content(topic, self.contents.values())
        want_bodies(unit, topic, self._named, self.place.erased)
        if not self.records:
            return
        if self._world.agenda or self._world.pending:
            raise BrokenInvariant("a unit ends with consequences that are not recorded")
        expected = self._expected
        for payer, places in groupby(range(len(self.records)), lambda place: self._payers.get(place, LOCAL_PAYER)):
            group = [*places]
            entries = [self._entries[place] for place in group]
            unit.append(topic, entries, expected, payer, [self.records[place].timestamp for place in group])
            expected += len(group)
        unit.put_rows(topic, [*take_rows(self._world, self.changes), *self._voids])
        for sha256 in self.place.erased:
            facts = unit.content_facts(topic, sha256)
            if facts is not None and not facts.pinned:
                unit.erase_content(topic, sha256)
        if self.place.erased:
            erase_answers(unit, topic)

    def _pass_time(self, until: int) -> None:
        """Record what was due by a consensus timestamp, each at the moment when it was due."""
        world = self._world
        for _ in range(ROUNDS_LIMIT):
            when = next_time(world)
            if not when or when > until:
                return
            now = self._timestamp = max(world.timestamp + 1, when)
            for draft in due(world, now):
                self._append(draft)
            self._follow_up()
            world.drop_timers(now)
        raise BrokenInvariant("the same event becomes due without end")

    def _take_message(self, message: Record) -> None:
        """Record one message and its consequences, or store why it leaves no record."""
        unit, topic, world = self._unit, self._topic, self._world
        timestamp = max(world.timestamp + 1, message.timestamp)
        wire = _wire_of(message.wire)
        if isinstance(wire, str):
            put_message(unit, topic, message, "", 0, wire)
            return
        reason = self._refusal(wire, message.payer, timestamp)
        structure: dict[str, Any] | None = None
        if reason is None and is_log(world, message.payer):
            try:
                structure = self._structure_of(wire, message.sequence)
            except JsonRefused:
                reason = STRUCTURE_REFUSED
        if reason is not None:
            put_message(unit, topic, message, wire.wire_id, 0, reason)
            return
        sequence = world.sequence + 1
        void = fold(world, self.changes, wire, sequence, timestamp, message.payer, structure)
        put_message(unit, topic, message, wire.wire_id, sequence, void or "")
        if void is not None:
            self._voids.append(void_row(sequence, void))
        elif type(wire.payload) is ContentErased:
            self.place.erased.add(wire.payload.sha256)
        else:
            self._named += [ref.sha256 for _, ref in content_refs(wire.payload)]
        self._payers[len(self.records)] = message.payer
        self._entries.append(Entry(message.wire, wire.wire_id, subjects(wire)))
        self.records.append(Settled(wire, sequence, timestamp, void, len(message.wire)))
        self._timestamp = timestamp + 1
        self._follow_up()

    def _refusal(self, wire: AnyWire, payer: str, timestamp: int) -> str | None:
        """Return why a message leaves no record; None if it is judged by the state that it meets."""
        world, payload = self._world, wire.payload
        if type(payload) is WorkspaceCreated and payload.rules < ORDER_RULES:
            return RULES_TOO_OLD
        refused = judge(world, event(wire, world.sequence + 1, timestamp, self.changes, payer), payload)
        if refused is not None:
            return refused
        if wire.sender == "system" and type(payload) not in _FACTS:
            return NOT_A_REQUEST
        if any(one.use == "order" and one.retired_at for one in world.workspace.topics.values()):
            return TOPIC_RETIRED
        key = request_key(payload)
        if key is not None and key[0] in world.done and is_log(world, payer):
            return DUPLICATE_REQUEST
        return DUPLICATE_WIRE if self._is_copy(wire, payer) else None

    def _is_copy(self, wire: AnyWire, payer: str) -> bool:
        """True if the wire is recorded already.

        A wire of the log itself is not blocked by an agent's wire with the same id: no agent can use up the ids of the
        log. An agent's wire is a copy of any wire with its id.
        """
        places = self._places
        for place in range(len(places), len(self.records)):
            places.setdefault(self.records[place].event.wire_id, place)
        record = None if wire.wire_id in places else self._unit.find(self._topic, wire.wire_id)
        if wire.wire_id in places:
            first = self._payers.get(places[wire.wire_id], LOCAL_PAYER)
        elif record is not None:
            first = record.payer
        else:
            return False
        return is_log(self._world, first) or not is_log(self._world, payer)

    def _structure_of(self, wire: AnyWire, sequence: int) -> dict[str, Any] | None:
        sha256 = structure_ref(wire.payload)
        if sha256 is None:
            return None
        content = self.contents.get(sha256) or self._unit.content(self._topic, sha256) or self.at_hand.get(sha256)
        if content is None:
            raise StructureMissing(sha256, sequence)
        # It may be stored as an ordinary body, or be in memory; from here on replay needs it.
        self.contents.setdefault(sha256, Content(sha256, content.data, pinned=True))
        return read(content)


class NoIds:
    """Refuses to draw ids: what follows from messages, and facts of a log, have ids derived from their causes."""

    def ulid(self) -> NoReturn:
        raise BrokenInvariant("a consequence of a message must not draw an id")


def _wire_of(data: bytes) -> AnyWire | str:
    """Decode the wire of a message; or return why it is not canonical bytes of a valid wire."""
    try:
        wire = read_wire(data)
    except UpgradeNeeded:
        return UNKNOWN_TYPE
    except (JsonRefused, WireRefused):
        return WIRE_INVALID
    return wire if encode(wire)[0] == data else WIRE_INVALID
