"""The memory store: everything a sequenced store does, but to survive. For simulation and tests.

A *disk* is what would survive. Several stores may share one, as several processes share a data directory: each
has its own clock and learns by `changed` that another has committed. Nothing here reads a real clock or draws
at random: the same calls on the same clock give the same ledger.
"""

from redkey.stores.memory.disk import MemoryDisk
from redkey.stores.memory.store import MemoryStore

__all__ = ["MemoryDisk", "MemoryStore"]
