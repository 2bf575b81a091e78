"""Open the memories of an agent: compared by meaning or by words, in a local file or a shared database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from redkey.runner.memory import minilm
from redkey.runner.memory.port import Memories

if TYPE_CHECKING:
    from redkey.runner.spec import Spec

_VARIABLE = "REDKEY_MEMORY_STORE"


def open_memories(spec: Spec, work: Path, *, create: bool = True) -> Memories | None:
    """Open the agent's memories; None if they are off, or if `create` is false and there is no file yet."""
    if spec.memory == "off":
        return None
    address, file = spec.memory_store or os.environ.get(_VARIABLE), work / "memory.sqlite"
    if not address and not create and not file.is_file():
        return None
    embedder = minilm.MiniLm() if spec.memory == "auto" and minilm.available() else None
    if address:
        from redkey.runner.memory.postgres import PostgresMemories

        return PostgresMemories(address, embedder, floor=spec.memory_floor)
    from redkey.runner.memory.sqlite import SqliteMemories

    return SqliteMemories(file, embedder, floor=spec.memory_floor)
