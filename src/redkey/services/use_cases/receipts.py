"""Receipts and signed heads: proof for a reader who trusts neither this server nor its operator.

A receipt is returned as its document, not as a struct: the log has signed exactly these fields.
"""

from __future__ import annotations

from typing import Any

from redkey.commands.decision import Refused, not_found
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.note import encode_base64
from redkey.services.caller import Caller
from redkey.services.receipts import proof_for, receipt_for
from redkey.services.use_case import use_case
from redkey.services.workspaces import workspaces
from redkey.shapes import receipts
from redkey.shapes.receipts import Checkpoint, ReceiptQuery
from redkey.wire.ids import wire_id_of

# The store finds records by their wire ids too, which callers of the API do not use.
_EVENT = "evt_"


@use_case(receipts.GET_RECEIPT)
async def get_receipt(caller: Caller, event_id: str, asked: ReceiptQuery) -> dict[str, Any] | str:
    """Return the receipt of an event; as C2SP text if only the proof is requested."""
    if asked.format == "tlog-proof":
        return await _tlog_proof(caller, event_id)
    return await _receipt(caller, event_id, offline=asked.format == "proof", content=asked.content)


@use_case(receipts.SHOW_RECEIPT)
async def show_receipt(caller: Caller, event_id: str) -> dict[str, Any]:
    """Return the whole receipt of an event of the caller's workspace, or of one that has made its receipts public."""
    if caller.actor.key_id:
        try:
            return await _receipt(caller, event_id, offline=True, content=False)
        except Refused as refused:
            if refused.status != 404:
                raise
    topic = await caller.in_thread(lambda: _public_topic(caller, event_id))
    if topic is not None:
        caller.topic = topic
        return await _receipt(caller, event_id, offline=True, content=False)
    # The same answer for events that do not exist and for those that are not public.
    if caller.actor.key_id:
        raise not_found("event")
    raise Refused(401, "unauthenticated", "This needs an API key or an access token.")


def _public_topic(caller: Caller, event_id: str) -> str | None:
    """Return the topic of an event whose workspace has public receipts; None if there is none."""
    store = caller.means.store
    if event_id.startswith(_EVENT):
        for topic, workspace in workspaces(store):
            if workspace.receipts_public and store.find(topic, wire_id_of(event_id)) is not None:
                return topic
    return None


@use_case(receipts.LATEST_CHECKPOINT)
async def latest_checkpoint(caller: Caller) -> Checkpoint:
    """Return the newest signed head; sign one now if there is none."""
    means, topic = caller.means, caller.topic

    def newest() -> bytes | None:
        found = means.store.checkpoints(topic, 1)
        return found[0][1] if found else means.signing.cover(topic, 1)

    note = await caller.in_thread(newest)
    if note is None:
        raise Refused(503, "checkpoint_pending", "The first checkpoint is not signed yet.")
    checkpoint, _ = open_checkpoint(note)
    return Checkpoint(
        origin=checkpoint.origin,
        size=checkpoint.size,
        root=encode_base64(checkpoint.root),
        note=note.decode(),
        keys=tuple(str(signer.verifier) for signer in means.signing.signers),
    )


async def _receipt(caller: Caller, event_id: str, *, offline: bool, content: bool) -> dict[str, Any]:
    means = caller.means

    def build() -> dict[str, Any] | None:
        return receipt_for(
            means.store,
            caller.topic,
            event_id,
            means.signing,
            base_url=means.config.public_url,
            offline=offline,
            content=content,
        )

    document = await caller.in_thread(build) if event_id.startswith(_EVENT) else None
    if document is None:
        raise not_found("event")
    return document


async def _tlog_proof(caller: Caller, event_id: str) -> str:
    means = caller.means

    def build() -> bytes | None:
        return proof_for(means.store, caller.topic, event_id, means.signing)

    proof = await caller.in_thread(build) if event_id.startswith(_EVENT) else None
    if proof is None:
        raise not_found("event")
    return proof.decode()
