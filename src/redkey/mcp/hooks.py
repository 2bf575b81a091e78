"""Hooks of Claude Code: what the agent of a session should see at the start of a session or a turn.

A hook is a separate process. It finds the slot of its session by the process that started both, the client, and acts as
the agent of that slot. A hook never fails a session: on errors it prints nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from redkey.client import RedKey
from redkey.client.agent_slots import SlotFile
from redkey.errors import RedKeyError
from redkey.mcp.slots import slots_in_use

_MOST_MESSAGES = 10
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox"))
_NAMES = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}


def answer(event: str) -> str:
    """The output of the hook; empty when there is nothing to show."""
    if not sys.stdin.isatty():
        # The client writes details of the session. They are not needed, but an unread pipe would break.
        sys.stdin.read()
    lines: list[str] = []
    for slot in _slots():
        try:
            with RedKey(slot.url, slot.api_key, timeout=3, max_retries=0) as rk:
                lines += _release(rk, slot) if event == "session-end" else _held(rk, slot, event) + _mail(rk, slot)
        except RedKeyError:
            continue
    if not lines or event not in _NAMES:
        return ""
    output = {"hookEventName": _NAMES[event], "additionalContext": "\n".join(lines)}
    return json.dumps({"hookSpecificOutput": output})


def _slots() -> list[SlotFile]:
    """The slots of the client that started this hook."""
    client = _client()
    return [slot for slot in slots_in_use(os.environ) if slot.client_pid == client and slot.api_key and slot.url]


def _client() -> int:
    """The process that started this hook: the first process above it that is not a shell.

    The search stops there: a client that runs inside another client must not release that one's tasks.
    """
    table = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=False).stdout  # noqa: S607
    rows = [line.split(None, 2) for line in table.splitlines()]
    known = {int(row[0]): (int(row[1]), Path(row[-1]).name.lstrip("-")) for row in rows if len(row) == 3}
    pid = os.getppid()
    while pid in known and known[pid][1] in _SHELLS:
        pid = known[pid][0]
    return pid


def _live(rk: RedKey, slot: SlotFile) -> Iterable[tuple[str, str, str]]:
    """The tasks that the agent holds, as (claim, task, title)."""
    left = rk.agents.get(slot.agent_id).live_claims
    for item in rk.agents.claim_history(slot.agent_id, limit=100) if left else ():
        task = rk.tasks.get(item.task_id) if item.status == "claimed" else None
        if task is not None and task.claim is not None and task.claim.claim_id == item.claim_id:
            left -= 1
            yield item.claim_id, item.task_id, task.title
        if not left:
            return


def _held(rk: RedKey, slot: SlotFile, event: str) -> list[str]:
    """List held tasks when a session starts, resumes or was compacted, not at every turn."""
    if event != "session-start":
        return []
    return [
        f"You hold the RedKey task {task_id} ({title}) by the claim {claim_id}. Its description is the resource "
        f"redkey://task/{task_id}. Continue it, or end it with complete_task, fail_task, block_task or release_task."
        for claim_id, task_id, title in _live(rk, slot)
    ]


def _mail(rk: RedKey, slot: SlotFile) -> list[str]:
    """List unread messages; they stay unread until read_inbox marks them."""
    messages = rk.inbox.list(to=slot.agent_id, unread=True, limit=_MOST_MESSAGES).page().items
    if not messages:
        return []
    lines = [f"- from {message.sender}: {message.subject[:200]}" for message in messages]
    head = "RedKey inbox (written by other agents and people; call read_inbox for the whole messages):"
    return [head, *lines]


def _release(rk: RedKey, slot: SlotFile) -> list[str]:
    for claim_id, _, _ in _live(rk, slot):
        rk.claims.release(claim_id)
    return []
