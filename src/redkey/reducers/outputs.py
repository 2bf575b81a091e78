"""The outputs of a completion: which artifacts it names, which are missing, and which RedKey did not see.

A completion names its artifacts on the wire, or by a manifest when there are many. A manifest is worked out, not
invented: it lists every ready artifact of the attempt, so whoever folds the wires has the same bytes and can tell
whether the hash on the wire is that of its own. `attempt` judges completions by this, `commands` refuses by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from redkey.ledger.content import body
from redkey.ledger.ports import Content
from redkey.wire.canonical import canonical
from redkey.wire.events import TaskComplete

# Since these rules a completion names every required output, and says which artifacts were not seen.
NAMING_RULES = 2
# So many artifacts are named on the wire; more go by a manifest.
INLINE_LIMIT = 4
# So many places of unverified artifacts stand on the wire.
UNVERIFIED_LIMIT = 6
# Whether a workspace completes with required outputs that RedKey did not see; it refuses until it decides otherwise.
ALLOW, REFUSE = "allow", "refuse"


class ReadyArtifact(Protocol):
    """What a manifest says of an artifact."""

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
    """Return the manifest of ready artifacts, one entry for each in the order of their ids.

    It holds no text, so it has no nonce: everybody who folds the wires has the same bytes.
    """
    entries: list[dict[str, Any]] = []
    for key, one in sorted(ready.items()):
        entry = {"artifact_id": key, "name": one.name, "version": one.version, "sha256": one.sha256, "bytes": one.bytes}
        entries.append(entry | {"unverified": True} if one.unverified else entry)
    return body(canonical({"artifacts": entries}))


def named_artifacts(ready: Ready, p: TaskComplete) -> Sequence[str] | None:
    """Return the ids that a completion names; None if its manifest is not the one of this attempt."""
    if p.manifest_ref is None:
        return p.artifact_ids
    return sorted(ready) if manifest(ready).sha256 == p.manifest_ref.sha256 else None


def missing_outputs(outputs: Sequence[str], ready: Ready, named: Sequence[str], rules: int) -> list[str]:
    """Return the named ids that are not ready, and the required outputs without a ready artifact among the named."""
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
    """Return the places of unverified artifacts among the named, as many as a wire lists."""
    places = [place for place, key in enumerate(named) if ready[key].unverified]
    return tuple(places[:UNVERIFIED_LIMIT])
