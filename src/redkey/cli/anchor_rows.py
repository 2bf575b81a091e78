"""Ask a mirror for the message that anchors a receipt, and for the one before it, which its running hash covers."""

from __future__ import annotations

import click

from redkey.errors import JsonRefused, NetworkAway, ProofRefused
from redkey.hedera.mirror import Mirror
from redkey.ledger.mirror import MirrorRow, parse_row
from redkey.ledger.receipt import read_receipt


def fetched_rows(url: str, receipt: bytes) -> list[MirrorRow]:
    """Return the rows that a mirror shows at the place that the receipt names; none if it names none."""
    try:
        offline = read_receipt(receipt)[1].offline
        if offline is None or not offline.anchor:
            return []
        named = parse_row(offline.anchor[-1], "the receipt's anchor")
        mirror = Mirror(url)
        try:
            first = max(1, named.sequence - 1)
            rows = mirror.messages(named.topic, sequencenumber=f"gte:{first}", limit=named.sequence - first + 1)
        finally:
            mirror.close()
        return [parse_row(row, url) for row in rows]
    except (JsonRefused, ProofRefused):
        # The verifier names what is wrong with a receipt.
        return []
    except NetworkAway as away:
        raise click.UsageError(f"--mirror {url}: {away.message} [{away.code}]") from away
