"""The runner's own key: its acts for an agent are recorded as `runner:<key>` with the agent's id, never as a human's.

The key has the scope `runner`. It is created once for each server, workspace and `--work` directory, if the given key
may create keys. Otherwise the runner uses the given key.
"""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from typing import Final

import msgspec

from redkey.client import ApiError, RedKey
from redkey.errors import ClientError

_log = logging.getLogger("redkey.runner")
_FILE: Final = "runner-keys.json"


class RunnerKey(msgspec.Struct, frozen=True):
    """A stored key of this runner for one server."""

    url: str
    workspace_id: str
    api_key: str


def acting(rk: RedKey, root: Path, workspace_id: str) -> RedKey:
    """Return a client with the runner's own key; the given client if its key may not create one."""
    path, url = root / _FILE, rk.settings.shown_url
    known = _read(path)
    for one in known:
        if (one.url, one.workspace_id) == (url, workspace_id) and _opens(one, workspace_id):
            return RedKey(url, one.api_key)
    try:
        made = rk.keys.create(workspace_id, scopes=["runner"], name=f"runner on {socket.gethostname()}"[:100])
    except ApiError as refused:
        _log.info("the runner uses the key that it was given (%s)", refused.code)
        return rk
    others = [one for one in known if (one.url, one.workspace_id) != (url, workspace_id)]
    _write(path, [*others, RunnerKey(url, workspace_id, made.api_key)])
    return RedKey(url, made.api_key)


def _opens(key: RunnerKey, workspace_id: str) -> bool:
    """Return whether the key still works: not revoked, and still the same server at this address."""
    with RedKey(key.url, key.api_key) as rk:
        try:
            return any(one.workspace_id == workspace_id for one in rk.workspaces.list())
        except ClientError:
            return False


def _read(path: Path) -> list[RunnerKey]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[RunnerKey])
    except (OSError, msgspec.DecodeError):
        return []


def _write(path: Path, keys: list[RunnerKey]) -> None:
    draft = path.with_name(f".{_FILE}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(msgspec.json.encode(keys))
    draft.replace(path)
