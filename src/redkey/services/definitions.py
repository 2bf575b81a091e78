"""Workflow definitions: drafts beside the ledger, published versions on it.

A draft is text that no run uses yet, so it is only a row: changed in place, never recorded, and deleted without a
trace. Publishing makes it a fact: `definition.published` names its structure and its text, the draft is deleted in the
same unit, and the version never changes.
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
    """The draft of a definition's next version. `body` is the hash of the creating request, to recognise its repeat."""

    definition_id: str
    version: int
    revision: int
    created_at: int
    updated_at: int
    # The plan is not decoded here, because most questions about a draft do not need it.
    plan: msgspec.Raw
    body: str = ""


_decode = msgspec.json.Decoder(StoredDraft).decode
_encode = msgspec.json.Encoder().encode


def read_draft(reader: Reader, topic: str, definition_id: str) -> StoredDraft | None:
    """Return the draft of a definition; None if it has none."""
    row = reader.row(topic, DRAFT, definition_id)
    return _decode(row.body) if row is not None else None


def draft_plan(draft: StoredDraft) -> dict[str, Any]:
    """Return the plan of a draft."""
    plan: dict[str, Any] = msgspec.json.decode(draft.plan)
    return plan


def read_definition(reader: Reader, topic: str, definition_id: str) -> Definition | None:
    """Return what was published of a definition; None if nothing was."""
    row = reader.row(topic, "definition", definition_id)
    found: Definition | None = entity(row) if row is not None else None
    return found


def read_version(reader: Reader, topic: str, definition_id: str, version: int) -> Version | None:
    """Return one published version."""
    row = reader.row(topic, "version", f"{definition_id}/{version}")
    found: Version | None = entity(row) if row is not None else None
    return found


def definition_ids(reader: Reader, topic: str, after: str, limit: int) -> list[str]:
    """Return ids of definitions in order, those with only a draft as well as published ones."""
    found: set[str] = set()
    for kind in (DRAFT, "definition"):
        found.update(row.key for row in reader.rows(topic, kind, None, (0, after), limit))
    return sorted(found)[:limit]


def versions(reader: Reader, topic: str, definition_id: str) -> Iterator[Version]:
    """Yield every published version, the first one first."""
    after: tuple[int, str] = (0, "")
    while rows := reader.rows(topic, "version", definition_id, after, 500):
        yield from map(entity, rows)
        after = rows[-1].position, rows[-1].key


def definition_id_of(idem: str, fresh: Callable[[], str]) -> str:
    """Return the id of a new definition: a repeated request with the same key gets the same id."""
    if not idem:
        return "def_" + fresh()
    digest = sha256(f"definition\n{idem}".encode()).digest()
    return "def_" + ulid(int.from_bytes(digest[:6]), digest[6:16])


def encoded(plan: Plan) -> msgspec.Raw:
    """Encode a plan as drafts store it. Plans may be large: encode them in a thread before the act."""
    return msgspec.Raw(_encode(plan))


def create_draft(unit: Unit, topic: str, definition_id: str, plan: msgspec.Raw, body: str) -> StoredDraft:
    """Store the first draft of a new definition: an act."""
    before = read_draft(unit, topic, definition_id)
    if before is not None or read_definition(unit, topic, definition_id) is not None:
        if before is None or before.body != body:
            raise key_reused()
        return before
    now = unit.next_timestamp(topic)
    return _put(unit, topic, StoredDraft(definition_id, 1, 1, now, now, plan, body))


def begin_version(unit: Unit, topic: str, definition_id: str, plan: msgspec.Raw | None) -> StoredDraft:
    """Start the draft of the next version, from the given plan or from the last published one: an act."""
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
    """Return the draft of a definition; Refused if it has none, or another revision than expected (0: any)."""
    draft = read_draft(reader, topic, definition_id)
    if draft is None:
        published = read_definition(reader, topic, definition_id) is not None
        raise no_draft() if published else not_found("definition")
    if expected and expected != draft.revision:
        raise _draft_changed(draft, expected)
    return draft


def _draft_changed(draft: StoredDraft, expected: int) -> Refused:
    detail = f"The draft is at revision {draft.revision}, not {expected}; read it again."
    return Refused(409, "draft_changed", detail)


def change_draft(unit: Unit, topic: str, before: StoredDraft, plan: msgspec.Raw) -> StoredDraft:
    """Replace a draft's plan: an act. Refused if the draft has changed since `before` was read."""
    draft = live_draft(unit, topic, before.definition_id, before.revision)
    if draft.version != before.version:
        raise _draft_changed(draft, before.revision)
    now = unit.next_timestamp(topic)
    return _put(unit, topic, msgspec.structs.replace(draft, revision=draft.revision + 1, updated_at=now, plan=plan))


def publish_check(unit: Unit, topic: str, definition_id: str, revision: int) -> None:
    """Refuse to publish a draft that was changed after it was validated."""
    if live_draft(unit, topic, definition_id, 0).revision != revision:
        raise Refused(409, "draft_changed", "The draft was changed meanwhile; read it and publish again.")


def drop_draft(unit: Unit, topic: str, definition_id: str) -> None:
    """Delete the draft: it was published, and its text is the version's now."""
    unit.delete_rows(topic, DRAFT, [definition_id])


def no_draft() -> Refused:
    """Return the refusal to change a published version."""
    detail = "This definition has no draft; a published version never changes. Begin a new version first."
    return Refused(409, "no_draft", detail)


def _put(unit: Unit, topic: str, draft: StoredDraft) -> StoredDraft:
    unit.put_rows(topic, [Row(DRAFT, draft.definition_id, _encode(draft))])
    return draft


def merge_patch(target: object, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7396) that is an object. Requests limit how deeply documents are nested."""
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            merged[name] = merge_patch(merged.get(name), value)
        else:
            merged[name] = value
    return merged
