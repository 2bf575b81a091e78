"""Artifacts by id: every reported version, with the attempt that produced it.

Each `artifact.ready` wire adds one version and no version is ever dropped: a version that is reported again (a draft
that is now final) is added to the end. The last report is the current version: ledger order decides, not the version
number. `attempt` decides whether a wire may report a version at all.
"""

from __future__ import annotations

from typing import Any

import msgspec

from redkey.wire.events import ArtifactReady, ArtifactSuperseded, Ref

DRAFT = "draft"


class Version(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One version of an artifact, as one wire reported it."""

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
        """Whether a task may be completed with this version."""
        return self.readiness != DRAFT


class Artifact(msgspec.Struct, gc=False):
    """One artifact, across all attempts and tasks that worked on it."""

    artifact_id: str
    versions: list[Version]
    # Which version was replaced by which, from the artifact's own stream.
    superseded: list[ArtifactSuperseded] = []

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
            "superseded": [
                {"version": row.version, "by_artifact_id": row.by_artifact_id, "by_version": row.by_version}
                for row in self.superseded
            ],
        }


def version_of(p: ArtifactReady, task_id: str, attempt: int, at: str | int) -> Version:
    """The version that an `artifact.ready` wire reports."""
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
