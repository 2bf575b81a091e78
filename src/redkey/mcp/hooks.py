"""Hooks of Claude Code: what the agent of a session should see at the start of a session or a turn.

A hook is a process of its own. It finds the slot of its session by the process that both have above them, the client,
and speaks as that agent. A hook never fails a session: what goes wrong is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from redkey.client import RedKey
from redkey.errors import RedKeyError
from redkey.mcp.slots import SlotFile, slots_in_use

_MOST_MESSAGES = 10
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox"))
_NAMES = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}


def answer(event: str) -> str:
    """What the hook prints; empty when there is nothing to say."""
    if not sys.stdin.isatty():
        # The client writes what it knows; nothing of it is needed, and a pipe that nobody reads breaks.
        sys.stdin.read()
    told: list[str] = []
    for slot in _slots():
        try:
            with RedKey(slot.url, slot.api_key, timeout=3, max_retries=0) as rk:
                told += _released(rk, slot) if event == "session-end" else _held(rk, slot, event) + _mail(rk, slot)
        except RedKeyError:
            continue
    if not told or event not in _NAMES:
        return ""
    said = {"hookEventName": _NAMES[event], "additionalContext": "\n".join(told)}
    return json.dumps({"hookSpecificOutput": said})


def _slots() -> list[SlotFile]:
    """The slots of the client that started this hook."""
    client = _client()
    return [slot for slot in slots_in_use(os.environ) if slot.client_pid == client and slot.api_key and slot.url]


def _client() -> int:
    """The process that started this hook: the first above this one that is no shell.

    None further up: a client that another client runs must not end what that one holds.
    """
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=False).stdout  # noqa: S607
    rows = [line.split(None, 2) for line in table.splitlines()]
    known = {int(row[0]): (int(row[1]), Path(row[-1]).name.lstrip("-")) for row in rows if len(row) == 3}
    pid = os.getppid()
    while pid in known and known[pid][1] in _SHELLS:
        pid = known[pid][0]
    return pid


def _live(rk: RedKey, slot: SlotFile) -> Iterable[tuple[str, str, str]]:
    """What the agent holds: claim, task, title."""
    left = rk.agents.get(slot.agent_id).live_claims
    for item in rk.agents.claim_history(slot.agent_id, limit=100) if left else ():
        task = rk.tasks.get(item.task_id) if item.status == "claimed" else None
        if task is not None and task.claim is not None and task.claim.claim_id == item.claim_id:
            left -= 1
            yield item.claim_id, item.task_id, task.title
        if not left:
            return


def _held(rk: RedKey, slot: SlotFile, event: str) -> list[str]:
    """Held tasks are shown again when a session starts, resumes or was compacted, not at every turn."""
    if event != "session-start":
        return []
    return [
        f"You hold the RedKey task {task_id} ({title}) by the claim {claim_id}. Its description is the resource "
        f"redkey://task/{task_id}. Go on with it, or end it with complete_task, fail_task, block_task or release_task."
        for claim_id, task_id, title in _live(rk, slot)
    ]


def _mail(rk: RedKey, slot: SlotFile) -> list[str]:
    """Messages that wait, shown and left unread: read_inbox marks them."""
    found = rk.inbox.list(to=slot.agent_id, unread=True, limit=_MOST_MESSAGES).page().items
    if not found:
        return []
    lines = [f"- from {one.sender}: {one.subject[:200]}" for one in found]
    head = "RedKey inbox (written by other agents and people; call read_inbox for the whole messages):"
    return [head, *lines]


def _released(rk: RedKey, slot: SlotFile) -> list[str]:
    for claim_id, _, _ in _live(rk, slot):
        rk.claims.release(claim_id)
    return []
