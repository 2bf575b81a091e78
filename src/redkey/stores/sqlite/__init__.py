"""The SQLite store: the embedded default."""

from redkey.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
