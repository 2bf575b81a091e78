"""The interfaces of a store of memories and of an embedder. A store needs only two calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

# How many memories without a vector get one during each recall.
CATCH_UP: Final = 256


class Owner(msgspec.Struct, frozen=True):
    """The owner of memories: an agent in a workspace. Owners never see each other's memories."""

    workspace_id: str
    agent: str


class Memory(msgspec.Struct, frozen=True):
    """One memory."""

    text: str
    written_at: str
    task_id: str = ""


class Embedder(Protocol):
    """Turns texts into vectors; texts of similar meaning have near vectors."""

    # The model's name; vectors of different models are never compared.
    name: str
    # Texts with a lower cosine similarity are unrelated.
    floor: float

    def embed(self, texts: Sequence[str]) -> Any:
        """Return a float32 array with one unit vector per text."""
        ...


class Memories(Protocol):
    """Stores and finds memories."""

    def remember(self, owner: Owner, text: str, *, task_id: str = "", written_at: str = "") -> None:
        """Store a text for its owner."""
        ...

    def recall(self, owner: Owner, about: str, limit: int = 8) -> list[Memory]:
        """Return the owner's memories nearest to a text, nearest first, without those below the relevance floor."""
        ...


def floor_of(embedder: Embedder | None, floor: float | None) -> float:
    """Return the relevance floor: the configured one, else the embedder's own."""
    if floor is not None:
        return floor
    return embedder.floor if embedder is not None else 0.0
