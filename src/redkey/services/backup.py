"""Backups: the manifest that lists what a backup holds, and how a restored log continues.

A backup is a copy of a data directory at one moment, with a manifest beside it. It lacks what was recorded after that
moment, so a restored ledger has another history than the lost one. It therefore continues in the next epoch, records
that on each topic, and signs under a new origin: a witness sees a new tree, not a fork. The store copies the files:
`Place.take_backup` of `redkey.stores.opening`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from redkey.commands.draft import Draft, derived_id
from redkey.errors import BackupRefused, JsonRefused
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.note import encode_base64
from redkey.ledger.ports import Reader, SequencedStore, Unit
from redkey.services.anchors import forget_anchors
from redkey.services.log_facts import EPOCH, Log, note_facts, read_log, workspace_of
from redkey.services.signing import WITNESSED, forget_signers
from redkey.wire.decode import decode
from redkey.wire.events import LedgerRestored

FORMAT = 1
MANIFEST = "backup.json"
_MANIFEST_LIMIT = 1024 * 1024 * 1024


class File(msgspec.Struct, frozen=True):
    """One file of a backup."""

    sha256: str
    bytes: int


class TopicState(msgspec.Struct, frozen=True):
    """Where a topic ended when the backup was taken."""

    topic_id: str
    records: int
    running_hash: str
    workspace_id: str | None = None
    checkpoint: str | None = None


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a backup holds: the log, its topics, and every file by its hash."""

    format: int
    taken_at: str
    keys: bool
    files: dict[str, File]
    topics: list[TopicState]
    log_id: str | None = None
    epoch: int | None = None

    def encode(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self)) + b"\n"


def describe(reader: Reader, taken_at: str, files: dict[str, File], *, keys: bool) -> Manifest:
    """Create the manifest of a backup of this store."""
    log = read_log(reader)
    topics = [_state(reader, topic) for topic in reader.topics()]
    identity = (None, None) if log is None else (log.log_id, log.epoch)
    return Manifest(FORMAT, taken_at, keys, files, topics, *identity)


def _state(reader: Reader, topic: str) -> TopicState:
    head = reader.head(topic)
    last = reader.checkpoints(topic, 1)
    note = last[0][1].decode() if last else None
    return TopicState(topic, head.sequence, encode_base64(head.running_hash), workspace_of(reader, topic), note)


def read_manifest(data: bytes) -> Manifest:
    """Read a manifest; BackupRefused if the bytes are not a manifest, or its format is newer."""
    try:
        document = decode(data, size_limit=_MANIFEST_LIMIT)
        newer = isinstance(document, dict) and document.get("format") not in (None, FORMAT)
        if newer:
            raise BackupRefused(f"the backup has format {document['format']}; use a newer RedKey", code="newer_format")
        return msgspec.convert(document, Manifest)
    except (JsonRefused, msgspec.ValidationError) as cause:
        raise BackupRefused(f"{MANIFEST} cannot be read: {cause}", code="manifest_malformed") from cause


def compare(manifest: Manifest, found: Iterable[tuple[str, File]]) -> list[str]:
    """List the differences between a manifest and the files in the backup, one sentence each."""
    missing = dict(manifest.files)
    wrong = []
    for name, file in found:
        told = missing.pop(name, None)
        if told is None:
            wrong.append(f"{name} is not part of the backup")
        elif told != file:
            wrong.append(f"{name} was changed")
    return [*wrong, *(f"{name} is missing" for name in missing)]


class Restored(msgspec.Struct, frozen=True):
    """A restored topic: the origin under which it is signed from now on."""

    topic: str
    records: int
    origin: str


def begin_epoch(store: SequencedStore, epoch: int | None, *, keys: bool) -> list[Restored]:
    """Start a new epoch of a restored store, by default the next one, with a record on each topic.

    If its keys were not restored, the log gets new signers; the old ones are recorded as retired when it next signs.
    """
    with store.write_store() as unit:
        before = read_log(unit)
        if before is None:
            # Nothing was ever signed, so nobody has seen a history that this one could contradict.
            return []
        log = Log(before.log_id, before.epoch + 1 if epoch is None else epoch)
        if log.epoch <= before.epoch:
            raise BackupRefused(
                f"the backup is of epoch {before.epoch}; a restore begins a later one", code="epoch_closed"
            )
        unit.put_setting(EPOCH, str(log.epoch))
        if not keys:
            forget_signers(unit)
    restored = []
    for topic in store.topics():
        with store.write(topic) as topic_unit:
            restored.append(_go_on(topic_unit, topic, before, log))
    return [one for one in restored if one is not None]


def _go_on(unit: Unit, topic: str, before: Log, log: Log) -> Restored | None:
    workspace_id = workspace_of(unit, topic)
    if workspace_id is None:
        return None
    where = f"workspace:{workspace_id}"
    payload = _restored(unit, topic, log.epoch, before.origin(workspace_id))
    wire_id = derived_id(workspace_id, payload.TYPE, f"e{log.epoch}")
    note_facts(unit, topic, [Draft(payload, where, where, wire_id=wire_id)])
    # Receipts of the new epoch use its own checkpoints.
    unit.put_fact(topic, WITNESSED + topic, "")
    forget_anchors(unit, topic)
    return Restored(topic, unit.head(topic).sequence - 1, log.origin(workspace_id))


def _restored(reader: Reader, topic: str, epoch: int, origin: str) -> LedgerRestored:
    """Return the last tree that the old epoch signed; if it signed none, the tree of the restored records."""
    last: Sequence[tuple[int, bytes]] = reader.checkpoints(topic, 1)
    if last:
        checkpoint = open_checkpoint(last[0][1])[0]
        root = encode_base64(checkpoint.root)
        return LedgerRestored(epoch=epoch, tree_size=checkpoint.size, root=root, origin=checkpoint.origin)
    tree = reader.tree(topic)
    return LedgerRestored(epoch=epoch, tree_size=tree.size, root=encode_base64(tree.root()), origin=origin)
