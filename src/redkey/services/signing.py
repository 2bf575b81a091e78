"""Signing: checkpoints of every topic, every second or 1,024 records, and at once when a receipt needs one.

A checkpoint is signed in an act (`acts`), a unit of its own under the writer lock: of several processes on one store
none signs a size below the last one, or a tree that does not continue it. The ledger tells who signs: a key's
`signer.added` stands on a topic before its first checkpoint there. While keys are rotated all of them sign;
`signer.retired` ends that, and only then is the secret deleted.

Where secrets are kept is `redkey.stores.keys`; what a checkpoint is, `redkey.ledger.checkpoint`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, Protocol

import msgspec

from redkey.errors import KeyRefused, LedgerError, ProofRefused, RedKeyError, WriterBusy
from redkey.ledger.checkpoint import PREVIOUS, Checkpoint, log_name, open_checkpoint, sign_checkpoint
from redkey.ledger.cosignature import cosignatures, with_cosignatures
from redkey.ledger.note import VerifierKey, encode_base64, parse_key
from redkey.ledger.ports import Reader, SequencedStore, StoreUnit, Unit
from redkey.ledger.signer import Signer
from redkey.ledger.tail import checkpoint_size
from redkey.services.acts import Perform, directly
from redkey.services.log_facts import (
    Log,
    note_facts,
    read_log,
    signer_added,
    signer_retired,
    signer_terms,
    workspace_of,
)
from redkey.services.outcome import Settled

RECORDS = 1024
SECONDS = 1.0
# How soon to try again when another process writes.
_BUSY_SECONDS = 0.05
# Settings: which keys sign, and by topic the newest checkpoint that a witness has cosigned.
SIGNERS = "signers"
WITNESSED = "witnessed/"
# A witness answers within minutes; at one checkpoint a second this is an hour of them.
_COSIGNABLE, _FEW = 3600, 16

State = Literal["active", "retired"]


class SigningKeys(Protocol):
    """Where the secrets of a log are kept."""

    def signers(self, *, create: bool = True) -> list[Signer]:
        """The keys that sign now; the first one is made when there is none and `create` allows it."""
        ...

    def add(self) -> Signer:
        """A new key beside the others."""
        ...

    def retire(self, key: VerifierKey) -> None:
        """Delete a secret; its public part stays."""
        ...


class Signing:
    """Signs the checkpoints of one store's topics."""

    def __init__(self, store: SequencedStore, keys: SigningKeys) -> None:
        self._store, self._keys = store, keys
        log = read_log(store)
        if log is None:
            raise LedgerError("the store is no log yet; open_log makes it one", code="log_unknown")
        self.log: Log = log
        self._perform: Perform = directly(store)
        self._signers = self._perform.on_store(self._open_keys)

    def pass_through(self, perform: Perform) -> None:
        """Sign in units that somebody else opens from now on: those of the server's coordinator."""
        self._perform = perform

    @property
    def signers(self) -> Sequence[Signer]:
        """The keys that sign now, oldest first."""
        return self._signers

    def sign(self, topics: Iterable[str] | None = None) -> None:
        """Sign the heads of these topics (of all). Waits for it: in a server, call it in a thread."""
        for topic in self.behind(self._store.topics() if topics is None else topics):
            self._perform(topic, partial(self.sign_in, topic=topic))

    def behind(self, topics: Iterable[str]) -> list[str]:
        """Those of the topics whose heads are not signed."""
        return [topic for topic in topics if not self._is_covered(self._store, topic)]

    def sign_in(self, unit: Unit, topic: str) -> None:
        """Sign a topic's head inside a unit that somebody else commits: an act."""
        workspace_id = workspace_of(unit, topic)
        if workspace_id is None:
            return
        self._see_rotation(unit)
        self._introduce(unit, topic, workspace_id)
        if self._is_covered(unit, topic):
            return
        tree = unit.tree(topic)
        last = unit.checkpoints(topic, 2)
        for size, note in last[:1]:
            if size > tree.size or open_checkpoint(note)[0].root != tree.root(size):
                raise LedgerError(
                    f"topic {topic} does not continue its checkpoint of size {size}; run redkey fsck",
                    code="checkpoint_contradicted",
                )
        # Each names the one before it, so that none can be deleted unseen. One that is signed anew is not its own.
        before = next((size for size, _ in last if size < tree.size), 0)
        named = (f"{PREVIOUS}{before}",) if before else ()
        checkpoint = Checkpoint(self.log.origin(workspace_id), tree.size, tree.root(), named)
        unit.put_checkpoint(topic, tree.size, sign_checkpoint(checkpoint, self._signers).encode())

    def cover(self, topic: str, sequence: int) -> bytes | None:
        """A checkpoint over this record: the last one witnessed if it will do, else the newest, signed if need be."""
        note = self._covering(topic, sequence)
        if note is None:
            self.sign([topic])
            note = self._covering(topic, sequence)
        return note

    def _covering(self, topic: str, sequence: int) -> bytes | None:
        witnessed = self._store.setting(WITNESSED + topic)
        notes = [note for _, note in self._store.checkpoints(topic, 1)]
        if witnessed:
            notes.insert(0, witnessed.encode())
        for note in notes:
            if (checkpoint_size(note) or 0) >= sequence and self._by_us(note):
                return note
        return None

    def add_cosignatures(self, unit: Unit, topic: str, answer: bytes, witnesses: Sequence[VerifierKey]) -> Checkpoint:
        """Keep the signature lines of these witnesses with the checkpoint they are of, one of the last: an act.

        Receipts of the records that it covers carry them from now on.
        """
        for size, data in _last_checkpoints(unit, topic):
            checkpoint, note = open_checkpoint(data)
            if not cosignatures(note, answer, witnesses):
                continue
            cosigned = with_cosignatures(note, answer, witnesses)
            unit.put_checkpoint(topic, size, cosigned.encode())
            before = unit.setting(WITNESSED + topic)
            if not before or (checkpoint_size(before.encode()) or 0) <= size:
                unit.put_fact(topic, WITNESSED + topic, cosigned.encode().decode())
            return checkpoint
        text = f"no line is a cosignature of one of the last {_COSIGNABLE:,} checkpoints of {topic} by a known witness"
        raise ProofRefused(text, code="cosignature_unknown")

    # Rotation.

    def add_signer(self) -> VerifierKey:
        """Begin a rotation: a new key, which signs beside the others from now on, on the record of every topic."""
        added = self._keys.add()
        self._rotate(added, "active")
        return added.verifier

    def retire_signer(self, key: VerifierKey) -> None:
        """End a rotation: the key signs nothing more. First the ledger says so, then the secret is deleted."""
        found = [one for one in self._signers if one.verifier.public_key == key.public_key]
        if not found:
            raise KeyRefused(f"no signing key has the id {key.key_id.hex()}", code="key_unknown")
        if found == self._signers:
            raise KeyRefused("the last signing key cannot be retired; add another one first", code="key_last")
        self._rotate(found[0], "retired")
        self._keys.retire(key)

    def _rotate(self, signer: Signer, state: State) -> None:
        """First the store says who signs, then each topic. What a crash leaves out is recorded when it next signs."""

        def change(unit: StoreUnit) -> None:
            _put_states(unit, {**_states(unit), _named(signer): state})
            self._see_rotation(unit)

        self._perform.on_store(change)
        self.sign()

    # Keys and the ledger.

    def _open_keys(self, unit: StoreUnit) -> list[Signer]:
        """The keys that sign, after what a process that died has left half done is finished."""
        states = _states(unit)
        signers = self._keys.signers(create=not states)
        for signer in signers:
            if states.setdefault(_named(signer), "active") == "retired":
                self._keys.retire(signer.verifier)
        _put_states(unit, states)
        return self._active(states, signers)

    def _see_rotation(self, unit: Reader) -> None:
        """Another process may have begun or ended a rotation: what the store says inside the unit holds."""
        states = _states(unit)
        if {_named(one) for one in self._signers} != {key for key, state in states.items() if state == "active"}:
            self._signers = self._active(states, self._keys.signers(create=False))

    def _active(self, states: dict[str, State], signers: list[Signer]) -> list[Signer]:
        active = [one for one in signers if states.get(_named(one)) == "active"]
        for key in {key for key, state in states.items() if state == "active"} - {_named(one) for one in active}:
            text = f"the secret of the signing key {key} is gone; bring it back from a backup of the keys"
            raise KeyRefused(text, code="key_lost")
        return active

    def _introduce(self, unit: Unit, topic: str, workspace_id: str) -> None:
        """Say on the ledger who signs, and who does so no more, before anything is signed."""
        terms = {term.key: term for term in signer_terms(unit, topic, log_name(self.log.log_id))}
        ours = {str(one.verifier): one.verifier for one in self._signers}
        facts = [signer_added(workspace_id, key) for text, key in ours.items() if text not in terms]
        size = unit.head(topic).sequence + len(facts)
        for text, term in terms.items():
            if term.retired is None and text not in ours:
                size += 1
                facts.append(signer_retired(workspace_id, parse_key(text), size))
        if facts:
            note_facts(unit, topic, facts)

    def _is_covered(self, reader: Reader, topic: str) -> bool:
        last = reader.checkpoints(topic, 1)
        return bool(last) and last[0][0] == reader.head(topic).sequence and self._by_us(last[0][1])

    def _by_us(self, note: bytes) -> bool:
        """True when exactly the keys that sign now have signed, in this epoch."""
        checkpoint, signed = open_checkpoint(note)
        ours = [one.verifier.named(checkpoint.origin) for one in self._signers]
        named = {one.key_id for one in signed.signatures if one.name == checkpoint.origin}
        return checkpoint.origin.endswith(f"/e{self.log.epoch}") and named == {key.key_id for key in ours}


class SigningSchedule:
    """Signs what this process records: within a second, or after 1,024 records. Nothing runs while nothing comes."""

    def __init__(
        self,
        signing: Signing,
        act: Callable[[str, Callable[[Unit], None]], Awaitable[None]],
        *,
        on_failure: Callable[[RedKeyError], None],
        seconds: float = SECONDS,
        records: int = RECORDS,
    ) -> None:
        """`act` does work in a unit of its own: the coordinator's."""
        self._signing, self._act, self._on_failure = signing, act, on_failure
        self._seconds, self._records = seconds, records
        self._uncovered: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._at_once = False
        # What is being signed now; one after the other.
        self._signs: asyncio.Task[None] | None = None

    def heard(self, topic: str, records: Sequence[Settled]) -> None:
        """Records were committed: a listener for the coordinator."""
        self._uncovered[topic] += len(records)
        if self._uncovered[topic] >= self._records and not self._at_once:
            self._schedule(0)
        elif self._timer is None:
            self._schedule(self._seconds)

    async def stop(self) -> None:
        """Sign what is left, and nothing after it."""
        if self._signs is not None:
            await self._signs
        if self._timer is not None:
            self._timer.cancel()
        await self._sign()

    def _schedule(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at_once = seconds == 0
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._timer, self._at_once = None, False
        if self._signs is None:
            self._signs = asyncio.ensure_future(self._sign())
            self._signs.add_done_callback(self._signed)

    def _signed(self, _: asyncio.Task[None]) -> None:
        self._signs = None
        if self._uncovered and self._timer is None:
            self._schedule(_BUSY_SECONDS)

    async def _sign(self) -> None:
        topics, self._uncovered = self._uncovered, Counter()
        try:
            behind = self._signing.behind(topics)
            sign = self._signing.sign_in
            await asyncio.gather(*(self._act(topic, partial(sign, topic=topic)) for topic in behind))
        except WriterBusy:
            self._uncovered += topics
        except RedKeyError as failure:
            self._on_failure(failure)


def _last_checkpoints(reader: Reader, topic: str) -> Iterator[tuple[int, bytes]]:
    """The checkpoints that may still be cosigned, newest first; mostly it is one of a few."""
    few = reader.checkpoints(topic, _FEW)
    yield from few
    if len(few) == _FEW:
        yield from reader.checkpoints(topic, _COSIGNABLE)[_FEW:]


def forget_signers(unit: StoreUnit) -> None:
    """This log's secrets are gone for good: let it make new ones when it is next opened for signing."""
    _put_states(unit, {})


def _states(reader: Reader) -> dict[str, State]:
    """Which keys this log has ever signed with, by public key, and whether they still sign."""
    text = reader.setting(SIGNERS)
    return msgspec.json.decode(text, type=dict[str, State]) if text else {}


def _named(signer: Signer) -> str:
    return encode_base64(signer.verifier.public_key)


def _put_states(unit: StoreUnit, states: dict[str, State]) -> None:
    unit.put_setting(SIGNERS, msgspec.json.encode(states, order="sorted").decode())
