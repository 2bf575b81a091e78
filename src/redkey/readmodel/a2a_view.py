"""Tasks as A2A shows them: the projection of `redkey.wire.a2a` run over the records of a task."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from redkey.errors import JsonRefused
from redkey.ledger.record import iso_time
from redkey.readmodel.rows import void_key
from redkey.readmodel.view import Shelf, read_document
from redkey.wire.a2a import A2ATask, Json, Ref, cannot_change, project, snapshot
from redkey.wire.a2a_contract import projection
from redkey.wire.decode import decode
from redkey.wire.envelope import AnyWire, wire_of
from redkey.wire.ids import event_id, parse_stream

_PAGE = 500
# Artifacts up to this size come with their bytes; a larger one is named by the URL of its content.
INLINE_BYTES = 32 * 1024


class Sighted(msgspec.Struct, frozen=True):
    """A task as A2A shows it, after the record with this sequence and event id."""

    task: A2ATask
    shown: Json
    sequence: int
    event_id: str


class Told(msgspec.Struct, frozen=True):
    """One object of a stream. `position` is where a follower resumes after it; `task` is what it leaves behind.

    `extensions` are those of the record that it came from.
    """

    position: str
    sequence: int
    event_id: str
    found: Json
    task: A2ATask
    extensions: Json


class Lens:
    """Runs the projection over the records of one workspace."""

    def __init__(self, shelf: Shelf, topic: str, public_url: str) -> None:
        self._shelf, self._topic, self._url = shelf, topic, public_url

    def sight(self, task_id: str, until: int = 0) -> Sighted | None:
        """The task after the record `until`, or as it is now; None when there was none."""
        task, sequence, last = None, 0, ""
        for wire, place, at in self._wires(task_id, 0):
            if until and place > until:
                break
            task, _ = project(task, wire, self._content, at, self._body)
            sequence, last = place, wire["wire_id"]
        return self.show(task, sequence, last) if task is not None else None

    def show(self, task: A2ATask, sequence: int, wire_id: str) -> Sighted:
        """A task that was projected, with all that is shown of it."""
        return Sighted(task, snapshot(task, self._content, self._body)["task"], sequence, event_id(wire_id))

    def begin(self, wires: Iterable[tuple[AnyWire, int, int]]) -> Sighted:
        """A task from its first wires, each with its sequence and timestamp."""
        task, shown, sequence, last = None, None, 0, ""
        for wire, place, timestamp in wires:
            sequence, last = place, wire.wire_id
            if task is not None and cannot_change(task, wire.type):
                # Most tasks only become available: the first object is all that there is to show.
                continue
            task, found = project(task, wire.as_json(), self._content, iso_time(timestamp), self._body)
            shown = found[0].get("task") if found else shown
        if task is None:
            raise AssertionError("a task without a beginning")
        return self.show(task, sequence, last) if shown is None else Sighted(task, shown, sequence, event_id(last))

    def after(self, task: A2ATask, after: int, skipped: int = 0) -> Iterator[Told]:
        """What was sent about a task after a place: every object once, in order.

        `skipped` objects of the first record were sent before.
        """
        for wire, sequence, at in self._wires(task.task_id, after):
            following, found = project(task, wire, self._content, at, self._body)
            if following is None:
                raise AssertionError("a task that was there is gone")
            task = following
            for index, one in enumerate(found, 1):
                if index <= skipped:
                    continue
                position = f"{sequence}" if index == len(found) else f"{sequence}.{index}"
                yield Told(position, sequence, event_id(wire["wire_id"]), one, task, wire.get("extensions") or {})
            skipped = 0

    def _wires(self, task_id: str, after: int) -> Iterator[tuple[Json, int, str]]:
        """The wires of a task's own streams that applied, with their places and times."""
        while True:
            records = self._shelf.events(self._topic, task_id, after, _PAGE)
            for record in records:
                wire: dict[str, Any] = wire_of(record.wire).as_json()
                stream = parse_stream(wire["stream"]["stream_id"])
                if stream.kind != "task" or stream.subject != task_id or wire["type"] not in projection().rules:
                    continue
                if self._shelf.row(self._topic, "void", void_key(record.sequence)) is None:
                    yield wire, record.sequence, iso_time(record.timestamp)
            if len(records) < _PAGE:
                return
            after = records[-1].sequence

    def _content(self, ref: Ref) -> Any:
        return read_document(self._shelf, self._topic, ref["sha256"])

    def _body(self, sha256: str, media_type: str, name: str) -> Json | None:
        """The part for bytes of this workspace: themselves when they are few, else where they are."""
        facts = self._shelf.content_facts(self._topic, sha256)
        if facts is None:
            return None
        kept = self._shelf.content(self._topic, sha256) if facts.bytes <= INLINE_BYTES else None
        if kept is None:
            return {"url": f"{self._url}/content/{sha256}", "filename": name}
        return part_of(kept.data, media_type) | {"filename": name}


def part_of(data: bytes, media_type: str) -> Json:
    """Bytes as the part that fits their media type: text, data or raw."""
    if media_type == "application/json" or media_type.endswith("+json"):
        try:
            return {"data": decode(data)}
        except JsonRefused:
            return {"raw": b64encode(data).decode()}
    if media_type.startswith("text/") or not media_type:
        try:
            return {"text": data.decode()}
        except UnicodeDecodeError:
            pass
    return {"raw": b64encode(data).decode()}
