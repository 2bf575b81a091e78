"""A receipt from a store: what `redkey receipt export` writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import orjson

from redkey.cli.store import chosen_topic, shown_store
from redkey.ledger.ports import Reader
from redkey.services.receipts import proof_for, receipt_for
from redkey.stores.opening import open_signing, open_store
from redkey.wire.ids import event_id as event_id_of

# So many ids are named when a beginning means several.
_MOST = 5


def exported(
    directory: str | Path, event_id: str, topic: str | None, base_url: str, *, content: bool, bare: bool
) -> bytes:
    """Return the bytes of a receipt, or of a bare proof; an unknown event is a usage error."""
    with open_store(directory, create=False) as store:
        signing = open_signing(store)
        topics = (chosen_topic(store, topic),) if topic else store.topics()
        event_id = _whole(store, topics, event_id)
        for name in topics:
            if bare:
                proof = proof_for(store, name, event_id, signing)
                if proof is not None:
                    return proof
                continue
            document = receipt_for(store, name, event_id, signing, base_url=base_url, content=content)
            if document is not None:
                return orjson.dumps(document) + b"\n"
    raise click.UsageError(f"there is no event {event_id!r} in {shown_store(directory)}")


def _whole(store: Reader, topics: Sequence[str], given: str) -> str:
    """Complete the beginning of an event id, from the events of these topics; return it unchanged if none matches."""
    if given.startswith("wire_"):
        return given
    beginning = "wire_" + given.removeprefix("evt_").upper()
    found = sorted({wire_id for topic in topics for wire_id in store.wire_ids(topic, beginning, _MOST)})
    if len(found) > 1 and beginning not in found:
        named = ", ".join(map(event_id_of, found[:_MOST]))
        raise click.UsageError(f"{given} is the beginning of several ids: {named}")
    return event_id_of(found[0]) if len(found) == 1 else given
