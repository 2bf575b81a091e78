"""Account labels: agents with the same label share a usage limit, in every directory and on every machine.

A limit belongs to a key or a login at the model's provider. The label is made from a hash of the key, or from the
login's id in the program's settings. Without either it is made from user and machine. `--account NAME` overrides it.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from redkey.runner.spec import Spec

Parts = list[str]
_HASH_CHARACTERS: Final = 16


def account_of(spec: Spec, called: str) -> str:
    """Return the account label of an agent that is called by this executor."""
    if spec.account is not None:
        return spec.account
    provider, *parts = _ACCOUNTS[called](spec)
    return f"{provider}-{_digest(*parts)}"


def label_in(workspace_id: str, spec: Spec, account: str) -> str:
    """Return the label that a workspace records. It differs between workspaces, unless the user chose it."""
    if spec.account is not None:
        return account
    provider, _, digest = account.rpartition("-")
    return f"{provider}-{_digest(workspace_id, digest)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_HASH_CHARACTERS]


def _claude(spec: Spec) -> Parts:
    if key := os.environ.get("ANTHROPIC_API_KEY"):
        return ["anthropic", key]
    folder = os.environ.get("CLAUDE_CONFIG_DIR")
    said = _settings(Path(folder) if folder else Path.home(), ".claude.json")
    return _login("claude", _at(said, "oauthAccount", "accountUuid"))


def _codex(spec: Spec) -> Parts:
    if key := os.environ.get("CODEX_API_KEY") or os.environ.get("OPENAI_API_KEY"):
        return ["codex", key]
    said = _settings(Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex"), "auth.json")
    return _login("codex", _at(said, "tokens", "account_id"))


def _gemini(spec: Spec) -> Parts:
    if key := os.environ.get("GEMINI_API_KEY"):
        return ["gemini", key]
    return _login("gemini", _at(_settings(Path.home() / ".gemini", "google_accounts.json"), "active"))


def _anthropic(spec: Spec) -> Parts:
    return ["anthropic", os.environ.get("ANTHROPIC_API_KEY", "")]


def _openai(spec: Spec) -> Parts:
    return ["openai", (spec.openai or "").rstrip("/"), os.environ.get("OPENAI_API_KEY", "")]


def _a2a(spec: Spec) -> Parts:
    return ["a2a", (spec.a2a or "").rstrip("/"), *spec.a2a_headers, os.environ.get("A2A_CLIENT_ID", "")]


def _program(spec: Spec) -> Parts:
    """Identify a user's program by its command and its variables, which may hold its key."""
    passed = [f"{name}={os.environ.get(name, '')}" for name in spec.env]
    return ["program", *_here(), str(spec.exec or spec.python), *passed]


def _login(provider: str, known: str) -> Parts:
    return [provider, "login", known] if known else [provider, *_here()]


def _here() -> Parts:
    return [socket.gethostname(), str(Path.home())]


def _settings(folder: Path, name: str) -> Any:
    try:
        return msgspec.json.decode((folder / name).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def _at(value: Any, *names: str) -> str:
    """Return the text under these nested names; empty if the settings have another shape."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


_ACCOUNTS: Final[Mapping[str, Callable[[Spec], Parts]]] = {
    "exec": _program,
    "python": _program,
    "claude-code": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "anthropic": _anthropic,
    "openai": _openai,
    "a2a": _a2a,
}
