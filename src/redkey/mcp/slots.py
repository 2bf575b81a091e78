"""The slots of coding agents: `claude-code@shop`, `claude-code-2@shop`, ... A process takes the first free slot.

The agent, its key, its inbox and its claims belong to the slot (`redkey.client.agent_slots`), so the next process under
the same name continues with them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import chain

from redkey.client.agent_slots import Slot, SlotFile, first_free_slot, read_slot, slot_folder, state_home
from redkey.errors import ConfigRefused

_MOST_SLOTS = 1000


def take_slot(environment: Mapping[str, str], identity: str, client: str, project: str) -> Slot:
    """Take the first free slot of a client in a project, on the server with this identity."""
    folder = slot_folder(environment, identity)
    plain = re.sub(r"[^a-z0-9]+", "-", client.lower()).strip("-")[:14].rstrip("-") or "agent"
    numbered = (f"{plain}-{number}@{project}" for number in range(2, _MOST_SLOTS))
    try:
        slot = first_free_slot(folder, chain((f"{plain}@{project}",), numbered))
    except OSError as cause:
        raise ConfigRefused(
            f"agents' keys cannot be stored in {folder}: {cause.strerror or cause}. Set XDG_STATE_HOME to a directory "
            "that you can write to."
        ) from cause
    if slot is None:
        raise ConfigRefused(f"{_MOST_SLOTS} processes of {plain} are already running in {project}")
    return slot


def slots_in_use(environment: Mapping[str, str]) -> Iterator[SlotFile]:
    """The slots of running processes, on every server."""
    for path in sorted(state_home(environment).glob("*/*.json")):
        slot = read_slot(path)
        if slot is not None and slot.pid and _is_alive(slot.pid):
            yield slot


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
