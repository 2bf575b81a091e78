"""The port of memories, and of what makes their vectors. A store on another database fits behind the same two calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec


class Owner(msgspec.Struct, frozen=True):
    """Whose memories: an agent's, in a workspace. Nobody recalls another's."""

    workspace_id: str
    agent: str


class Memory(msgspec.Struct, frozen=True):
    """One thing remembered."""

    text: str
    written_at: str
    task_id: str = ""


class Embedder(Protocol):
    """Texts as vectors of one length, nearer the more alike they mean."""

    # Vectors of different names do not compare.
    name: str

    def embed(self, texts: Sequence[str]) -> Any:
        """A float32 array of one unit vector for each text."""
        ...


class Memories(Protocol):
    """Keeps and finds memories."""

    def remember(self, owner: Owner, text: str, *, task_id: str = "", written_at: str = "") -> None:
        """Keep a text for its owner."""
        ...

    def recall(self, owner: Owner, about: str, limit: int = 8) -> list[Memory]:
        """The owner's memories that are nearest to a text, the nearest first."""
        ...
