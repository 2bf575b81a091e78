"""Workflow definitions: drafts beside the ledger, published versions on it.

A draft is text that nobody works by yet, so it is a row and nothing else: changed in place, never recorded, and gone
without a trace. Publishing makes it a fact: `definition.published` names its structure and its text, the draft is gone
in the same unit, and the version never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from redkey.commands.decision import Refused, key_reused, not_found
from redkey.ledger.ports import Reader, Row, Unit
from redkey.readmodel.rows import DRAFT, entity
from redkey.readmodel.view import read_document
from redkey.reducers.entities import Definition, Version
from redkey.wire.ids import ulid

Plan = dict[str, Any]


class StoredDraft(msgspec.Struct, frozen=True):
    """The draft of a definition's next version. `body` is the hash of the request that made it, for one that comes
    again."""

    definition_id: str
    version: int
    revision: int
    created_at: int
    updated_at: int
    # The plan as it is; most questions about a draft do not look into it.
    plan: msgspec.Raw
    body: str = ""


_decode = msgspec.json.Decoder(StoredDraft).decode
_encode = msgspec.json.Encoder().encode


def read_draft(reader: Reader, topic: str, definition_id: str) -> StoredDraft | None:
    """The draft of a definition; None when it has none."""
    row = reader.row(topic, DRAFT, definition_id)
    return _decode(row.body) if row is not None else None


def draft_plan(draft: StoredDraft) -> dict[str, Any]:
    """The plan of a draft."""
    plan: dict[str, Any] = msgspec.json.decode(draft.plan)
    return plan


def read_definition(reader: Reader, topic: str, definition_id: str) -> Definition | None:
    """What was published of a definition; None when nothing was."""
    row = reader.row(topic, "definition", definition_id)
    found: Definition | None = entity(row) if row is not None else None
    return found


def read_version(reader: Reader, topic: str, definition_id: str, version: int) -> Version | None:
    """One published version."""
    row = reader.row(topic, "version", f"{definition_id}/{version}")
    found: Version | None = entity(row) if row is not None else None
    return found


def definition_ids(reader: Reader, topic: str, after: str, limit: int) -> list[str]:
    """Ids of definitions in their order, those with a draft only and those that were published alike."""
    found: set[str] = set()
    for kind in (DRAFT, "definition"):
        found.update(row.key for row in reader.rows(topic, kind, None, (0, after), limit))
    return sorted(found)[:limit]


def versions(reader: Reader, topic: str, definition_id: str) -> Iterator[Version]:
    """Every published version, the first one first."""
    after: tuple[int, str] = (0, "")
    while rows := reader.rows(topic, "version", definition_id, after, 500):
        yield from map(entity, rows)
        after = rows[-1].position, rows[-1].key


def definition_id_of(idem: str, fresh: Callable[[], str]) -> str:
    """The id of a new definition: a request that comes again with its key finds the definition it made."""
    if not idem:
        return "def_" + fresh()
    digest = sha256(f"definition\n{idem}".encode()).digest()
    return "def_" + ulid(int.from_bytes(digest[:6]), digest[6:16])


def encoded(plan: Plan) -> msgspec.Raw:
    """A plan as drafts keep it. Plans may be large: encode them before the act, in a thread."""
    return msgspec.Raw(_encode(plan))


def create_draft(unit: Unit, topic: str, definition_id: str, plan: msgspec.Raw, body: str) -> StoredDraft:
    """Keep the first draft of a new definition: an act."""
    before = read_draft(unit, topic, definition_id)
    if before is not None or read_definition(unit, topic, definition_id) is not None:
        if before is None or before.body != body:
            raise key_reused()
        return before
    now = unit.next_timestamp(topic)
    return _put(unit, topic, StoredDraft(definition_id, 1, 1, now, now, plan, body))


def begin_version(unit: Unit, topic: str, definition_id: str, plan: msgspec.Raw | None) -> StoredDraft:
    """Begin the draft of the next version, from the given plan or from the last one that was published: an act."""
    if read_draft(unit, topic, definition_id) is not None:
        raise Refused(409, "draft_exists", "This definition has a draft already; change it, or publish it first.")
    definition = read_definition(unit, topic, definition_id)
    last = read_version(unit, topic, definition_id, definition.version) if definition is not None else None
    if definition is None or last is None:
        raise not_found("definition")
    if plan is None:
        document = read_document(unit, topic, last.content_sha256)
        if document is None:
            raise Refused(409, "content_erased", "The text of the last version was erased; send the plan.")
        plan = encoded(document["plan"])
    now = unit.next_timestamp(topic)
    return _put(unit, topic, StoredDraft(definition_id, definition.version + 1, 1, now, now, plan))


def live_draft(reader: Reader, topic: str, definition_id: str, expected: int) -> StoredDraft:
    """The draft of a definition; refused when it has none, or another revision than the expected one (0: any)."""
    draft = read_draft(reader, topic, definition_id)
    if draft is None:
        published = read_definition(reader, topic, definition_id) is not None
        raise no_draft() if published else not_found("definition")
    if expected and expected != draft.revision:
        detail = f"The draft is at revision {draft.revision}, not {expected}; read it again."
        raise Refused(409, "draft_changed", detail)
    return draft


def change_draft(unit: Unit, topic: str, before: StoredDraft, plan: msgspec.Raw) -> StoredDraft | None:
    """Put a plan in the place of a draft's: an act. None when the draft is not the one before any more."""
    draft = read_draft(unit, topic, before.definition_id)
    if draft is None or (draft.version, draft.revision) != (before.version, before.revision):
        return None
    now = unit.next_timestamp(topic)
    return _put(unit, topic, msgspec.structs.replace(draft, revision=draft.revision + 1, updated_at=now, plan=plan))


def publish_check(unit: Unit, topic: str, definition_id: str, revision: int) -> None:
    """Refuse to publish another draft than the one that was looked at."""
    if live_draft(unit, topic, definition_id, 0).revision != revision:
        raise Refused(409, "draft_changed", "The draft was changed meanwhile; read it and publish again.")


def drop_draft(unit: Unit, topic: str, definition_id: str) -> None:
    """The draft was published: its text is the version's now."""
    unit.delete_rows(topic, DRAFT, [definition_id])


def no_draft() -> Refused:
    """What is published never changes."""
    detail = "This definition has no draft; a published version never changes. Begin a new version first."
    return Refused(409, "no_draft", detail)


def _put(unit: Unit, topic: str, draft: StoredDraft) -> StoredDraft:
    unit.put_rows(topic, [Row(DRAFT, draft.definition_id, _encode(draft))])
    return draft


def merge_patch(target: object, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7396) that is an object. Requests limit how deep documents are nested."""
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            merged[name] = merge_patch(merged.get(name), value)
        else:
            merged[name] = value
    return merged
