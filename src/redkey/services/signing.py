"""Signing: checkpoints of every topic, every second or 1,024 records, and at once if a receipt needs one.

The unit that passes a second or 1,024 records since the last checkpoint signs one itself (`signing_times`): the ledger
shows all servers the same last checkpoint, so however many they are, they sign one a second. Records after the last
unit of a busy time are signed a second later, in an act (`acts`), a unit of its own. Both hold the writer lock: no
server signs a size below the last one, or a tree that does not continue it. The ledger records who signs: a key's
`signer.added` is on a topic before its first checkpoint there. While keys are rotated all of them sign;
`signer.retired` ends that, and only then is the secret deleted.

Where secrets are kept is `redkey.stores.keys`; what a checkpoint is, `redkey.ledger.checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Literal, Protocol

import msgspec

from redkey.commands.draft import Draft
from redkey.errors import KeyRefused, LedgerError, ProofRefused
from redkey.ledger.checkpoint import PREVIOUS, Checkpoint, log_name, open_checkpoint, sign_checkpoint
from redkey.ledger.cosignature import cosignatures, with_cosignatures
from redkey.ledger.network import is_projected
from redkey.ledger.note import VerifierKey, encode_base64, parse_key
from redkey.ledger.ports import Reader, SequencedStore, StoreUnit, Unit
from redkey.ledger.signer import Signer
from redkey.ledger.tail import checkpoint_size
from redkey.services.acts import Perform, directly
from redkey.services.anchors import newest_anchor
from redkey.services.log_facts import (
    Log,
    note_facts,
    read_log,
    signer_added,
    signer_retired,
    signer_terms,
    workspace_of,
)

# Settings: which keys sign, and by topic the newest checkpoint that a witness has cosigned.
SIGNERS = "signers"
WITNESSED = "witnessed/"
# How far back a checkpoint may be cosigned. Witnesses answer within minutes; at one a second this is an hour.
_COSIGNABLE, _FEW = 3600, 16

State = Literal["active", "retired"]


class SigningKeys(Protocol):
    """The store of a log's secrets."""

    def signers(self, *, create: bool = True) -> list[Signer]:
        """Return the keys that sign now; if there is none, create the first one if `create` allows it."""
        ...

    def add(self) -> Signer:
        """Create a key beside the others."""
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
            raise LedgerError("the store is not a log yet; open_log makes it one", code="log_unknown")
        self.log: Log = log
        self._perform: Perform = directly(store)
        self._signers = self._perform.on_store(self._open_keys)

    def pass_through(self, perform: Perform) -> None:
        """From now on let `perform` open the units in which checkpoints are signed: the server's coordinator."""
        self._perform = perform

    @property
    def signers(self) -> Sequence[Signer]:
        """Return the keys that sign now, oldest first."""
        return self._signers

    def sign(self, topics: Iterable[str] | None = None) -> None:
        """Sign the heads of these topics (or of all). Blocks: in a server, call it in a thread."""
        for topic in self.behind(self._store.topics() if topics is None else topics):
            self._perform(topic, partial(self.sign_in, topic=topic))

    def behind(self, topics: Iterable[str]) -> list[str]:
        """Return those of the topics whose heads are not signed."""
        return [topic for topic in topics if not self._is_covered(self._store, topic)]

    def signed_up_to(self, topic: str) -> int:
        """Return the size of the last checkpoint that the current keys have signed; 0 if there is none."""
        last = self._store.checkpoints(topic, 1)
        return last[0][0] if last and self._by_us(last[0][1]) else 0

    def sign_in(self, unit: Unit, topic: str) -> None:
        """Sign a topic's head inside a unit that the caller commits: an act."""
        workspace_id = workspace_of(unit, topic)
        if workspace_id is None:
            return
        self._see_rotation(unit)
        facts = self.facts(unit, topic, workspace_id)
        if facts and is_projected(topic):
            # Only what a network orders is written there: a message introduces the keys first.
            return
        if facts:
            note_facts(unit, topic, facts)
        if not self._is_covered(unit, topic):
            self._put_checkpoint(unit, topic, workspace_id)

    def sign_along(self, unit: Unit, topic: str) -> None:
        """Sign at the end of a unit of commands, unless the ledger must record the signers first: an act does that."""
        workspace_id = workspace_of(unit, topic)
        if workspace_id is None or is_projected(topic):
            return
        self._see_rotation(unit)
        if not self.facts(unit, topic, workspace_id):
            self._put_checkpoint(unit, topic, workspace_id)

    def _put_checkpoint(self, unit: Unit, topic: str, workspace_id: str) -> None:
        tree = unit.tree(topic)
        last = unit.checkpoints(topic, 2)
        for size, note in last[:1]:
            if size > tree.size or open_checkpoint(note)[0].root != tree.root(size):
                raise LedgerError(
                    f"topic {topic} does not continue its checkpoint of size {size}; run redkey fsck",
                    code="checkpoint_contradicted",
                )
        # Each names the one before it, so that a deleted one is noticed. A checkpoint signed again does not name
        # itself.
        before = next((size for size, _ in last if size < tree.size), 0)
        named = (f"{PREVIOUS}{before}",) if before else ()
        checkpoint = Checkpoint(self.log.origin(workspace_id), tree.size, tree.root(), named)
        unit.put_checkpoint(topic, tree.size, sign_checkpoint(checkpoint, self._signers).encode())

    def cover(self, topic: str, sequence: int) -> bytes | None:
        """Return a checkpoint over this record: an anchored or witnessed one if it covers it, else the newest."""
        note = self._covering(topic, sequence)
        if note is None:
            self.sign([topic])
            note = self._covering(topic, sequence)
        return note

    def _covering(self, topic: str, sequence: int) -> bytes | None:
        witnessed, anchored = self._store.setting(WITNESSED + topic), newest_anchor(self._store, topic)
        notes = [note for _, note in self._store.checkpoints(topic, 1)]
        if witnessed:
            notes.insert(0, witnessed.encode())
        if anchored is not None:
            notes.insert(0, anchored.note.encode())
        for note in notes:
            if (checkpoint_size(note) or 0) >= sequence and self._by_us(note):
                return note
        return None

    def add_cosignatures(self, unit: Unit, topic: str, answer: bytes, witnesses: Sequence[VerifierKey]) -> Checkpoint:
        """Store the signature lines of these witnesses with their checkpoint, one of the last: an act.

        Receipts of the records that it covers include them from now on.
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
        """Begin a rotation: create a key that signs beside the others from now on, on the record of every topic."""
        added = self._keys.add()
        self._rotate(added, "active")
        return added.verifier

    def retire_signer(self, key: VerifierKey) -> None:
        """End a rotation: the key signs nothing more. The ledger records this first, then the secret is deleted."""
        found = [one for one in self._signers if one.verifier.public_key == key.public_key]
        if not found:
            raise KeyRefused(f"no signing key has the id {key.key_id.hex()}", code="key_unknown")
        if found == self._signers:
            raise KeyRefused("the last signing key cannot be retired; add another one first", code="key_last")
        self._rotate(found[0], "retired")
        self._keys.retire(key)

    def _rotate(self, signer: Signer, state: State) -> None:
        """Store who signs, then record it on each topic. What a crash leaves out is recorded at the next signature."""

        def change(unit: StoreUnit) -> None:
            _put_states(unit, {**_states(unit), _named(signer): state})
            self._see_rotation(unit)

        self._perform.on_store(change)
        self.sign()

    # Keys and the ledger.

    def _open_keys(self, unit: StoreUnit) -> list[Signer]:
        """Return the keys that sign, after finishing what a process that died left incomplete."""
        states = _states(unit)
        signers = self._keys.signers(create=not states)
        for signer in signers:
            if states.setdefault(_named(signer), "active") == "retired":
                self._keys.retire(signer.verifier)
        _put_states(unit, states)
        return self._active(states, signers)

    def _see_rotation(self, unit: Reader) -> None:
        """Reload the keys: another process may have begun or ended a rotation. Inside a unit, the store is current."""
        states = _states(unit)
        if {_named(one) for one in self._signers} != {key for key, state in states.items() if state == "active"}:
            self._signers = self._active(states, self._keys.signers(create=False))

    def _active(self, states: dict[str, State], signers: list[Signer]) -> list[Signer]:
        active = [one for one in signers if states.get(_named(one)) == "active"]
        for key in {key for key, state in states.items() if state == "active"} - {_named(one) for one in active}:
            text = f"the secret of the signing key {key} is gone; bring it back from a backup of the keys"
            raise KeyRefused(text, code="key_lost")
        return active

    def facts(self, unit: Reader, topic: str, workspace_id: str) -> list[Draft]:
        """Return what the ledger must record before anything is signed: which keys sign, and which do so no more."""
        terms = {term.key: term for term in signer_terms(unit, topic, log_name(self.log.log_id))}
        ours = {str(one.verifier): one.verifier for one in self._signers}
        facts = [signer_added(workspace_id, key) for text, key in ours.items() if text not in terms]
        size = unit.head(topic).sequence + len(facts)
        for text, term in terms.items():
            if term.retired is None and text not in ours:
                size += 1
                facts.append(signer_retired(workspace_id, parse_key(text), size))
        return facts

    def _is_covered(self, reader: Reader, topic: str) -> bool:
        last = reader.checkpoints(topic, 1)
        return bool(last) and last[0][0] == reader.head(topic).sequence and self._by_us(last[0][1])

    def _by_us(self, note: bytes) -> bool:
        """True if exactly the current keys have signed, in this epoch."""
        checkpoint, signed = open_checkpoint(note)
        ours = [one.verifier.named(checkpoint.origin) for one in self._signers]
        named = {one.key_id for one in signed.signatures if one.name == checkpoint.origin}
        return checkpoint.origin.endswith(f"/e{self.log.epoch}") and named == {key.key_id for key in ours}


def _last_checkpoints(reader: Reader, topic: str) -> Iterator[tuple[int, bytes]]:
    """Yield the checkpoints that may still be cosigned, newest first; usually it is one of the first few."""
    few = reader.checkpoints(topic, _FEW)
    yield from few
    if len(few) == _FEW:
        yield from reader.checkpoints(topic, _COSIGNABLE)[_FEW:]


def forget_signers(unit: StoreUnit) -> None:
    """Let the log create new secrets when it is next opened for signing: the old ones are lost."""
    _put_states(unit, {})


def _states(reader: Reader) -> dict[str, State]:
    """Return which keys this log has ever signed with, by public key, and whether they still sign."""
    text = reader.setting(SIGNERS)
    return msgspec.json.decode(text, type=dict[str, State]) if text else {}


def _named(signer: Signer) -> str:
    return encode_base64(signer.verifier.public_key)


def _put_states(unit: StoreUnit, states: dict[str, State]) -> None:
    unit.put_setting(SIGNERS, msgspec.json.encode(states, order="sorted").decode())
