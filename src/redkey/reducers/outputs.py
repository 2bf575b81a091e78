"""The outputs of a completion: which artifacts it names, which are missing, and which RedKey has not seen.

A completion names its artifacts on the wire, or by a manifest when there are many. The manifest is computed: it lists
every ready artifact of the attempt, so every reader of the wires gets the same bytes and can compare its hash with the
hash on the wire. `attempt` judges completions by these functions, `commands` refuses by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from redkey.ledger.content import body
from redkey.ledger.ports import Content
from redkey.wire.canonical import canonical
from redkey.wire.events import TaskComplete

# The first version of the workspace rules under which a completion names every required output and lists its unverified
# artifacts.
NAMING_RULES = 2
# The largest number of artifacts that a wire names; more go into a manifest.
INLINE_LIMIT = 4
# The largest number of unverified artifacts that a wire lists.
UNVERIFIED_LIMIT = 6
# Whether a workspace accepts completions with required outputs that RedKey has not seen; the default is refuse.
ALLOW, REFUSE = "allow", "refuse"


class ReadyArtifact(Protocol):
    """What a manifest contains of an artifact."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def sha256(self) -> str: ...

    @property
    def bytes(self) -> int: ...

    @property
    def unverified(self) -> bool: ...


Ready = Mapping[str, ReadyArtifact]


def manifest(ready: Ready) -> Content:
    """Return the manifest of ready artifacts, one entry for each, ordered by id.

    It contains no text, so it has no nonce: every reader of the wires gets the same bytes.
    """
    entries: list[dict[str, Any]] = []
    for artifact_id, artifact in sorted(ready.items()):
        entry = {
            "artifact_id": artifact_id,
            "name": artifact.name,
            "version": artifact.version,
            "sha256": artifact.sha256,
            "bytes": artifact.bytes,
        }
        entries.append(entry | {"unverified": True} if artifact.unverified else entry)
    return body(canonical({"artifacts": entries}))


def named_artifacts(ready: Ready, p: TaskComplete) -> Sequence[str] | None:
    """Return the ids that a completion names; None if its manifest does not match this attempt."""
    if p.manifest_ref is None:
        return p.artifact_ids
    return sorted(ready) if manifest(ready).sha256 == p.manifest_ref.sha256 else None


def missing_outputs(outputs: Sequence[str], ready: Ready, named: Sequence[str], rules: int) -> list[str]:
    """Return the named ids that are not ready, and the required outputs that no named ready artifact provides."""
    if not named and not outputs:
        return []
    among = named if rules >= NAMING_RULES else ready
    names = {ready[key].name for key in among if key in ready}
    return [key for key in named if key not in ready] + [name for name in outputs if name not in names]


def unverified_outputs(outputs: Sequence[str], ready: Ready, named: Sequence[str]) -> list[str]:
    """Return the required outputs for which every named artifact is unverified."""
    seen = {ready[key].name for key in named if not ready[key].unverified}
    return [name for name in outputs if name not in seen]


def unverified_places(ready: Ready, named: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of unverified artifacts among the named, as many as a wire lists."""
    places = [place for place, key in enumerate(named) if ready[key].unverified]
    return tuple(places[:UNVERIFIED_LIMIT])
