"""The bodies of one topic: each matches its hash, or is deleted. `wire_check` checks whether it may be deleted."""

from __future__ import annotations

from collections.abc import Set
from hashlib import sha256

from redkey.services.fsck.evidence import Body, Evidence
from redkey.services.fsck.report import Report

# Bodies of this size or more are not kept in the database.
_INLINE = 1024 * 1024


def check_bodies(evidence: Evidence, topic: str, report: Report, structures: Set[str] | None) -> None:
    """Check every body that was not erased, and that erased ones are gone.

    `structures` are those that the ledger names as structure: only they may be pinned. None if that is not known.
    """
    for body in evidence.bodies(topic):
        report.figures["contents"] += 1
        if body.pinned and structures is not None and body.sha256 not in structures:
            text = f"the content {body.sha256} is pinned but is not structure: it could not be erased"
            report.add("content_pinned_wrongly", text, topic)
        if body.erased:
            report.figures["contents erased"] += 1
            if body.found is not None and not _is_zeros(*body.found):
                report.add("content_not_erased", f"the content {body.sha256} was erased and is still there", topic)
        elif (wrong := _wrong(body)) is not None:
            report.add(*wrong, topic)


def _is_zeros(size: int, digest: str) -> bool:
    """True if the body is all zeros: what is left of an erased body that was not a file."""
    return size <= _INLINE and digest == sha256(bytes(size)).hexdigest()


def _wrong(body: Body) -> tuple[str, str] | None:
    if body.found is None:
        return "content_lost", f"the file of the content {body.sha256} is missing"
    size, digest = body.found
    if digest != body.sha256:
        return "content_wrong", f"the content {body.sha256} has another hash: it was changed"
    if size != body.size:
        return "content_size", f"the content {body.sha256} has {size} bytes, the store says {body.size}"
    return None
