"""Slots: the names that client processes act under, one process each.

`claude-code@shop`, `claude-code-2@shop`, ...: a process takes the first slot that no living process has. The agent, its
key, its inbox and what it holds belong to the slot, so that whoever comes next under the same name goes on with them.
A slot is a file in the state directory of the user and a lock on it that ends with the process, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from redkey.errors import ConfigRefused

_MOST_SLOTS = 1000


class SlotFile(msgspec.Struct, rename="camel", omit_defaults=True):
    """What is kept of a slot."""

    name: str
    agent_id: str = ""
    api_key: str = ""
    # The process that has it, and the client that started that one: hooks of the client find their slot by it.
    pid: int = 0
    client_pid: int = 0
    url: str = ""

    def __repr__(self) -> str:
        """Without the key: this may end in a log."""
        return f"SlotFile({self.name!r}, {self.agent_id!r})"


class Slot:
    """A slot that this process has until it ends."""

    def __init__(self, path: Path, descriptor: int, kept: SlotFile) -> None:
        self._path, self._descriptor, self.kept = path, descriptor, kept

    @property
    def name(self) -> str:
        return self.kept.name

    def save(self) -> None:
        """Keep what is known of the slot, for its owner alone."""
        part = self._path.with_suffix(".part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as writing:
            writing.write(msgspec.json.encode(self.kept))
        part.replace(self._path)

    def leave(self) -> None:
        """Let the next process have it."""
        self.kept.pid = self.kept.client_pid = 0
        with suppress(OSError):
            self.save()
        os.close(self._descriptor)


def state_home(environment: Mapping[str, str]) -> Path:
    """Where a user's slots are: beside no project, so that no checkout can bring one."""
    given = environment.get("XDG_STATE_HOME", "")
    base = Path(given) if given.startswith("/") else Path("~/.local/state").expanduser()
    return base / "redkey" / "agents"


def take_slot(environment: Mapping[str, str], identity: str, client: str, project: str) -> Slot:
    """The first free slot of a client in a project, on the server with this identity."""
    folder = _folder(environment, identity)
    plain = re.sub(r"[^a-z0-9]+", "-", client.lower()).strip("-")[:14].rstrip("-") or "agent"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1, _MOST_SLOTS):
            name = f"{plain}-{number}@{project}" if number > 1 else f"{plain}@{project}"
            slot = _try(folder / f"{name}.json", name)
            if slot is not None:
                return slot
    except OSError as cause:
        raise ConfigRefused(
            f"agents' keys cannot be kept in {folder}: {cause.strerror or cause}. Set XDG_STATE_HOME to a directory "
            "that you can write to."
        ) from cause
    raise ConfigRefused(f"{_MOST_SLOTS} processes of {plain} run in {project} already")


def _folder(environment: Mapping[str, str], identity: str) -> Path:
    return state_home(environment) / hashlib.sha256(identity.encode()).hexdigest()[:16]


def _try(path: Path, name: str) -> Slot | None:
    lock = path.with_suffix(".lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return Slot(path, descriptor, read_slot(path) or SlotFile(name))


def read_slot(path: Path) -> SlotFile | None:
    """What is kept of a slot; None when there is nothing to read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=SlotFile)
    except (OSError, msgspec.DecodeError):
        return None


def slots_in_use(environment: Mapping[str, str]) -> Iterator[SlotFile]:
    """The slots that living processes have, on every server."""
    for path in sorted(state_home(environment).glob("*/*.json")):
        kept = read_slot(path)
        if kept is not None and kept.pid and _is_alive(kept.pid):
            yield kept


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
