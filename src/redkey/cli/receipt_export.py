"""A receipt from a data directory: what `redkey receipt export` writes."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from redkey.cli.store import chosen_topic
from redkey.services.receipts import proof_for, receipt_for
from redkey.stores.opening import open_signing, open_store


def exported(directory: Path, event_id: str, topic: str | None, base_url: str, *, content: bool, bare: bool) -> bytes:
    """The bytes of a receipt, or of a proof alone; an event that is not there is a wrong use of the command."""
    with open_store(directory, create=False) as store:
        signing = open_signing(store)
        for name in (chosen_topic(store, topic),) if topic else store.topics():
            if bare:
                proof = proof_for(store, name, event_id, signing)
                if proof is not None:
                    return proof
                continue
            document = receipt_for(store, name, event_id, signing, base_url=base_url, content=content)
            if document is not None:
                return orjson.dumps(document) + b"\n"
    raise click.UsageError(f"there is no event {event_id!r} in {directory}")
