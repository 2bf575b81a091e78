"""Copy a ledger and its secrets to another store, and compare both before servers may use the copy."""

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
    """Copy a ledger, or continue an interrupted copy; raise CopyRefused if source and copy differ at the end.

    The source may be in use; the copy then has its state at one moment. Servers must not run on both: they would sign
    two histories under one name.
    """
    with source.inspect() as evidence, target.open(create=True) as store:
        copy = LedgerCopy(evidence, store, copying)
        copied = copy.run()
        if keys:
            secrets = source.export_secrets()
            if not any(secret.name.startswith("signer/") for secret in secrets):
                text = "the source has no signing keys; restore them from a backup that was taken --with-keys"
                raise CopyRefused(text, code="key_lost")
            store.secrets.restore(secrets)
        with target.inspect() as copied_evidence:
            compare(evidence, copied_evidence, comparing)
        copy.finish()
    return copied
