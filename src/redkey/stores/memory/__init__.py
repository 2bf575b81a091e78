"""The memory store: a sequenced store without durability, for simulation and tests.

A *disk* is the state that would survive. Several stores may share one, as several processes share a data directory:
each has its own clock and learns from `changed` that another one has committed. Nothing here reads a real clock or uses
randomness: the same calls with the same clock give the same ledger.
"""

from redkey.stores.memory.disk import MemoryDisk
from redkey.stores.memory.store import MemoryStore

__all__ = ["MemoryDisk", "MemoryStore"]
