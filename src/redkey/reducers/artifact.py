"""Artifacts by id: every version that was ever said to be there, with the attempt that made it.

A version is what one `artifact.ready` says. Nothing that was said is dropped: a version said again (a draft
that is now final) stands after the first. What was said last is what the artifact is now: the order of the
ledger decides, not the number. Whether a wire may say it at all is for `attempt` to judge.
"""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.wire.events import ArtifactReady, Ref

DRAFT = "draft"


class Version(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One version of an artifact, as one wire told it."""

    name: str
    version: int
    readiness: str
    sha256: str
    bytes: int
    content_ref: Ref
    task_id: str
    attempt: int
    derived_from: tuple[str, ...]
    at: str | int
    unverified: bool = False
    uri: str | None = None

    @property
    def ready(self) -> bool:
        """Whether a task may be completed with it."""
        return self.readiness != DRAFT


class Artifact(msgspec.Struct, gc=False):
    """One artifact, over all attempts and tasks that worked on it."""

    artifact_id: str
    versions: list[Version]

    @property
    def current(self) -> Version:
        return self.versions[-1]

    def as_json(self) -> dict[str, Any]:
        current = self.current
        return {
            "artifact_id": self.artifact_id,
            "name": current.name,
            "version": current.version,
            "readiness": current.readiness,
            "sha256": current.sha256,
            "bytes": current.bytes,
            "lineage": {
                "task_id": current.task_id,
                "attempt": current.attempt,
                "derived_from": list(current.derived_from),
            },
            "versions": msgspec.json.decode(msgspec.json.encode(self.versions)),
        }


def version_of(p: ArtifactReady, task_id: str, attempt: int, at: str | int) -> Version:
    """The version that an `artifact.ready` tells."""
    return Version(
        p.name,
        p.version,
        p.readiness,
        p.sha256,
        p.bytes,
        p.content_ref,
        task_id,
        attempt,
        p.derived_from or (),
        at,
        p.unverified is not None,
        p.uri,
    )
