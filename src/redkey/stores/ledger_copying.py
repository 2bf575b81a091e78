"""Copy a ledger from one place to another, with its secrets, and compare the two before servers may use the copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redkey.errors import CopyRefused
from redkey.services.copy_check import compare
from redkey.services.ledger_copy import Copied, LedgerCopy, Progress

if TYPE_CHECKING:
    from redkey.stores.opening import Place


def copy_ledger(
    source: Place,
    target: Place,
    *,
    keys: bool = True,
    copying: Progress | None = None,
    comparing: Progress | None = None,
) -> Copied:
    """Copy a ledger, or continue a copy that was cut off; CopyRefused if the two differ in the end.

    The source may be in use. Then the copy is of one moment, and servers must not run on both: they would sign two
    histories under one name.
    """
    with source.inspect() as evidence, target.open(create=True) as store:
        copy = LedgerCopy(evidence, store, copying)
        copied = copy.run()
        if keys:
            found = source.export_secrets()
            if not any(secret.name.startswith("signer/") for secret in found):
                text = "the signing keys of the source are not there; restore them from a backup --with-keys"
                raise CopyRefused(text, code="key_lost")
            store.secrets.restore(found)
        with target.inspect() as copied_evidence:
            compare(evidence, copied_evidence, comparing)
        copy.finish()
    return copied
