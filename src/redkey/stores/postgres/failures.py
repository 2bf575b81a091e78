"""What PostgreSQL and its driver say when something fails, as errors of the store.

Each message is one line: what is wrong, and the next step. An error in a round trip that does not contain the COMMIT
means that nothing was stored; whether a connection that was lost during the COMMIT is a doubt, `unit` decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from redkey.errors import StoreError, StoreFailed, StoreFull, StoreRefused, WriterBusy

# sqlstate -> the error, its code and what to do.
_STATES: dict[str, tuple[type[StoreError], str, str]] = {
    "53100": (StoreFull, "store_full", "the disk of the database is full; free some space, nothing was stored"),
    "53200": (StoreFailed, "store_failed", "the database is out of memory; nothing was stored"),
    "53300": (
        StoreFailed,
        "too_many_connections",
        "the database has no connection left; raise max_connections, or run fewer servers (each needs up to 16)",
    ),
    "55P03": (WriterBusy, "writer_busy", "another writer holds the lock; wait for it, or try again"),
    "25006": (
        StoreFailed,
        "store_read_only",
        "the database is read-only (a replica?); use the address of the primary",
    ),
    "25P04": (
        StoreFailed,
        "unit_too_long",
        "the unit took longer than PostgreSQL was told to wait; nothing was stored",
    ),
    "3D000": (StoreRefused, "no_store", "there is no such database; create it with createdb, or fix the URL"),
    "28000": (StoreRefused, "store_login", "the database refuses this user; fix user and password in the URL"),
    "28P01": (StoreRefused, "store_login", "the database refuses this password; fix user and password in the URL"),
    "42501": (
        StoreRefused,
        "store_rights",
        "the user has no rights to the schema redkey; connect as its owner, or GRANT CREATE ON DATABASE to the user",
    ),
}
# The driver knows no sqlstate when a connection could not be opened: PostgreSQL's own words tell the reason.
_WORDS: tuple[tuple[str, str], ...] = (
    ("too many clients", "53300"),
    ("remaining connection slots", "53300"),
    ("too many connections", "53300"),
    ("no more connections allowed", "53300"),
    ("password authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("no pg_hba.conf entry", "28000"),
    ("role ", "28000"),
    ("database ", "3D000"),
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise what the driver raises inside as an error of the store."""
    try:
        yield
    except psycopg.Error as error:
        failure = translate(error)
        if failure is None:
            raise
        raise failure from error


def translate(error: psycopg.Error) -> StoreError | None:
    """The store's error for one of the driver's; None for a mistake in our own statements."""
    text = " ".join(str(error).split())
    state = error.sqlstate or _state_of(text)
    if state in _STATES:
        kind, code, advice = _STATES[state]
        return kind(f"{advice}: {text}", code=code)
    lost = state is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if lost or (state is not None and state[:2] in ("08", "40", "53", "57", "58", "XX")):
        told = f"the database cannot be used: {text}; check that it runs and that the URL is right"
        return StoreFailed(told, code="store_unreachable" if lost or str(state)[:2] in ("08", "57") else None)
    return None


def _state_of(text: str) -> str | None:
    if "connection failed" not in text and "FATAL" not in text:
        return None
    fatal = text.partition("FATAL: ")[2].strip()
    return next((state for words, state in _WORDS if words in fatal), None)
