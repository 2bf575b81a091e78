"""Configuration files of MCP clients: where each client lists its servers; how an entry is added and removed.

Files are edited, never overwritten: comments, order and other servers stay as they are. A file that cannot be parsed is
refused with the line of the error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from redkey.errors import RedKeyError
from redkey.mcp.json_text import JsonBroken, remove_member, set_member

NAME = "redkey"
_CODEX, _GEMINI = ".codex/config.toml", ".gemini/settings.json"
Scope = Literal["project", "user"]


class ClientFileRefused(RedKeyError):
    """The configuration file of a client cannot be changed."""

    code = "client_file_refused"


@dataclass(frozen=True)
class McpClient:
    """A client and its files. A client without a file is configured by commands of its own."""

    name: str
    project_file: str
    user_file: str
    default: Scope
    # The next step for the person.
    then: str
    format: Literal["json", "toml", "command"] = "json"
    typed: bool = False
    # Further settings of the entry, unless a person has changed them.
    settings: Mapping[str, Any] = field(default_factory=dict)

    def file(self, scope: Scope, directory: Path, environment: Mapping[str, str]) -> Path:
        """The file that contains the entry."""
        if scope == "project":
            return directory / self.project_file
        home = Path(environment.get("HOME") or Path.home())
        if self.name == "codex" and environment.get("CODEX_HOME"):
            return Path(environment["CODEX_HOME"]) / "config.toml"
        return home / self.user_file


_CURSOR = "open the folder in Cursor, switch the server redkey on, and ask the agent to work the queue"
_CLAUDE = "start claude here, approve the server redkey, and ask it to work the queue"
# Codex sends its first request to the model after a second, without the tools of an optional server that is starting.
_REQUIRED = {"required": True, "startup_timeout_sec": 60}
_CLIENTS = (
    McpClient("claude-code", ".mcp.json", ".claude.json", "project", _CLAUDE, typed=True),
    McpClient(
        *("codex", _CODEX, _CODEX, "user", "start codex here and ask it to work the queue"),
        format="toml",
        settings=_REQUIRED,
    ),
    McpClient("cursor", ".cursor/mcp.json", ".cursor/mcp.json", "project", _CURSOR),
    McpClient("gemini", _GEMINI, _GEMINI, "project", "start gemini here and ask it to work the queue"),
    McpClient("openclaw", "", "", "user", "ask OpenClaw to work the queue", format="command"),
)
CLIENTS = {client.name: client for client in _CLIENTS}


def entry(
    client: McpClient, options: tuple[str, ...] = (), variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a client needs to start `redkey mcp`; it names this interpreter, because graphical programs have no PATH."""
    server: dict[str, Any] = {"type": "stdio"} if client.typed else {}
    server |= {"command": sys.executable, "args": ["-m", "redkey", "mcp", *options], **client.settings}
    if variables:
        server["env"] = dict(variables)
    return server


def shown(client: McpClient, server: Mapping[str, Any]) -> str:
    """The entry as a person would write it."""
    if client.format == "toml":
        return _toml_table(server)
    if client.format == "command":
        return shlex.join(openclaw_command("http://127.0.0.1:8700", "KEY_OF_AN_AGENT"))
    return json.dumps({"mcpServers": {NAME: server}}, indent=2)


def openclaw_command(url: str, api_key: str) -> list[str]:
    """The command for OpenClaw: it is a server itself and calls RedKey over HTTP, as one agent."""
    header = f"Authorization: Bearer {api_key}"
    return ["openclaw", "mcp", "add", NAME, "--url", f"{url}/mcp", "--transport", "streamable-http", "--header", header]


def install(client: McpClient, file: Path, server: Mapping[str, Any]) -> bool:
    """Add the entry to the file; return whether that changed it."""
    before = _read(file)
    after = _with_toml(client, before, server, file) if client.format == "toml" else _with_json(before, server, file)
    return _write(file, before, after)


def uninstall(client: McpClient, file: Path) -> bool:
    """Remove the entry from the file; return whether it was there."""
    before = _read(file)
    if not before.strip():
        return False
    after = _without_toml(before, file) if client.format == "toml" else _without_json(before, file)
    return _write(file, before, after)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as cause:
        raise ClientFileRefused(f"{file} cannot be read: {cause}; nothing was changed") from cause


def _write(file: Path, before: str, after: str) -> bool:
    if before == after:
        return False
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Follow links and keep the file's mode: it may contain keys of other servers.
        target = file.resolve()
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        part.touch(mode=0o600)
        part.write_text(after, encoding="utf-8")
        part.chmod(mode)
        part.replace(target)
    except OSError as cause:
        raise ClientFileRefused(f"{file} cannot be written: {cause.strerror or cause}; nothing was changed") from cause
    return True


def _with_json(text: str, server: Mapping[str, Any], file: Path) -> str:
    try:
        return set_member(text, ("mcpServers", NAME), dict(server))
    except JsonBroken as broken:
        raise _refused(file, broken.line, broken.reason) from None


def _without_json(text: str, file: Path) -> str:
    try:
        return remove_member(text, ("mcpServers", NAME))
    except JsonBroken as broken:
        raise _refused(file, broken.line, broken.reason) from None


def _refused(file: Path, line: int | str, reason: str) -> ClientFileRefused:
    return ClientFileRefused(f"{file}:{line}: {reason}; nothing was changed. Correct it, then run this again.")


def _check_toml(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as broken:
        match = re.search(r"at line (\d+)", str(broken))
        line = match[1] if match else "?"
        raise ClientFileRefused(
            f"{file}:{line}: it is not TOML ({broken}); nothing was changed. Correct it first."
        ) from None


def _with_toml(client: McpClient, text: str, server: Mapping[str, Any], file: Path) -> str:
    config = _check_toml(text, file)
    servers = config.get("mcp_servers", {})
    if not isinstance(servers, dict):
        raise ClientFileRefused(f"{file}: mcp_servers is not a table; nothing was changed. Correct it first.")
    # Keep what a person has added to the entry, such as timeouts.
    before = {name: value for name, value in servers.get(NAME, {}).items() if name != "env"}
    wanted = {**before, **server, **{name: before[name] for name in client.settings if name in before}}
    if servers.get(NAME) == wanted:
        return text
    import tomlkit

    document = tomlkit.parse(text)
    tables = document.setdefault("mcp_servers", tomlkit.table(is_super_table=True))
    table = tomlkit.table()
    for name, value in wanted.items():
        table[name] = value
    tables[NAME] = table
    return tomlkit.dumps(document)


def _without_toml(text: str, file: Path) -> str:
    config = _check_toml(text, file)
    if NAME not in config.get("mcp_servers", {}):
        return text
    import tomlkit

    document = tomlkit.parse(text)
    del document["mcp_servers"][NAME]
    if not document["mcp_servers"]:
        del document["mcp_servers"]
    return tomlkit.dumps(document)


def _toml_table(server: Mapping[str, Any]) -> str:
    lines = [f"[mcp_servers.{NAME}]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in server.items() if name != "env"]
    if "env" in server:
        lines += [
            "",
            f"[mcp_servers.{NAME}.env]",
            *(f"{name} = {json.dumps(value)}" for name, value in server["env"].items()),
        ]
    return "\n".join(lines)
