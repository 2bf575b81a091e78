"""Slots: agent names for the processes of one user, each used by one running process and stored with its agent's key.

A slot is a file in the user's state directory, and a lock on it that the system releases when the process ends, even in
a crash. The slot stores the agent and its key, so the next process with the same name continues as the same agent, and
two processes that run at the same time are two agents.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec


class SlotFile(msgspec.Struct, rename="camel", omit_defaults=True):
    """The contents of a slot file."""

    name: str
    agent_id: str = ""
    api_key: str = ""
    # The process that uses the slot, and the client that started that process: hooks of the client find their slot by
    # it.
    pid: int = 0
    client_pid: int = 0
    url: str = ""

    def __repr__(self) -> str:
        """Omit the key, because a repr may end up in a log."""
        return f"SlotFile({self.name!r}, {self.agent_id!r})"


class Slot:
    """A slot that this process holds until it ends."""

    def __init__(self, path: Path, descriptor: int, kept: SlotFile) -> None:
        self._path, self._descriptor, self.kept = path, descriptor, kept

    @property
    def name(self) -> str:
        return self.kept.name

    def save(self) -> None:
        """Write the slot's file, readable only by its owner."""
        part = self._path.with_suffix(".part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as writing:
            writing.write(msgspec.json.encode(self.kept))
        part.replace(self._path)

    def leave(self) -> None:
        """Release the slot for the next process."""
        self.kept.pid = self.kept.client_pid = 0
        if self.kept.api_key:
            with suppress(OSError):
                self.save()
        os.close(self._descriptor)


def state_home(environment: Mapping[str, str]) -> Path:
    """Return the folder of a user's slots; it is outside of every project, so no checkout can contain one."""
    state_directory = environment.get("XDG_STATE_HOME", "")
    base = Path(state_directory) if state_directory.startswith("/") else Path("~/.local/state").expanduser()
    return base / "redkey" / "agents"


def slot_folder(environment: Mapping[str, str], identity: str) -> Path:
    """Return the folder with the slots of one server; `identity` identifies the server."""
    return state_home(environment) / hashlib.sha256(identity.encode()).hexdigest()[:16]


def first_free_slot(folder: Path, names: Iterable[str]) -> Slot | None:
    """Take the first of these names that no running process uses; None if all are in use, OSError without a folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in names:
        slot = _try(folder / f"{name}.json", name)
        if slot is not None:
            return slot
    return None


def read_slot(path: Path) -> SlotFile | None:
    """Read a slot file; None if it is missing or invalid."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=SlotFile)
    except (OSError, msgspec.DecodeError):
        return None


def _try(path: Path, name: str) -> Slot | None:
    # Some systems that the client supports do not have these locks.
    import fcntl

    lock = path.with_suffix(".lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return Slot(path, descriptor, read_slot(path) or SlotFile(name))
