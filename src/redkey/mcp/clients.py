"""Configuration files of MCP clients: where each keeps its servers, and how an entry is put in and taken out.

Files are merged, never overwritten: comments, order and other servers stay as they are. A file that cannot be read is
refused with its line.
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
    """A client and its files. A client without a file is set up by commands of its own."""

    name: str
    project_file: str
    user_file: str
    default: Scope
    # What a person does next.
    then: str
    format: Literal["json", "toml", "command"] = "json"
    typed: bool = False
    # What the entry needs beside the command, unless a person has set it otherwise.
    settings: Mapping[str, Any] = field(default_factory=dict)

    def file(self, scope: Scope, directory: Path, environment: Mapping[str, str]) -> Path:
        """The file that has the entry."""
        if scope == "project":
            return directory / self.project_file
        home = Path(environment.get("HOME") or Path.home())
        if self.name == "codex" and environment.get("CODEX_HOME"):
            return Path(environment["CODEX_HOME"]) / "config.toml"
        return home / self.user_file


_CURSOR = "open the folder in Cursor, switch the server redkey on, and ask the agent to work the queue"
_CLAUDE = "start claude here, approve the server redkey, and ask it to work the queue"
# Codex asks its model a second after its start, without the tools of a server that still starts and is not required.
_WAITED_FOR = {"required": True, "startup_timeout_sec": 60}
_CLIENTS = (
    McpClient("claude-code", ".mcp.json", ".claude.json", "project", _CLAUDE, typed=True),
    McpClient(
        *("codex", _CODEX, _CODEX, "user", "start codex here and ask it to work the queue"),
        format="toml",
        settings=_WAITED_FOR,
    ),
    McpClient("cursor", ".cursor/mcp.json", ".cursor/mcp.json", "project", _CURSOR),
    McpClient("gemini", _GEMINI, _GEMINI, "project", "start gemini here and ask it to work the queue"),
    McpClient("openclaw", "", "", "user", "ask OpenClaw to work the queue", format="command"),
)
CLIENTS = {client.name: client for client in _CLIENTS}


def entry(
    client: McpClient, options: tuple[str, ...] = (), variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a client needs to start `redkey mcp`, by the interpreter that runs this: graphical programs have no PATH."""
    made: dict[str, Any] = {"type": "stdio"} if client.typed else {}
    made |= {"command": sys.executable, "args": ["-m", "redkey", "mcp", *options], **client.settings}
    if variables:
        made["env"] = dict(variables)
    return made


def shown(client: McpClient, made: Mapping[str, Any]) -> str:
    """The entry as a person would write it."""
    if client.format == "toml":
        return _toml_table(made)
    if client.format == "command":
        return shlex.join(openclaw_command("http://127.0.0.1:8700", "KEY_OF_AN_AGENT"))
    return json.dumps({"mcpServers": {NAME: made}}, indent=2)


def openclaw_command(url: str, api_key: str) -> list[str]:
    """OpenClaw is a server itself and calls RedKey by HTTP, as one agent."""
    header = f"Authorization: Bearer {api_key}"
    return ["openclaw", "mcp", "add", NAME, "--url", f"{url}/mcp", "--transport", "streamable-http", "--header", header]


def install(client: McpClient, file: Path, made: Mapping[str, Any]) -> bool:
    """Put the entry into the file; whether that changed it."""
    before = _read(file)
    after = _with_toml(client, before, made, file) if client.format == "toml" else _with_json(before, made, file)
    return _write(file, before, after)


def uninstall(client: McpClient, file: Path) -> bool:
    """Take the entry out of the file; whether it was there."""
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
        # Through links, and with the mode that the file has: it may hold keys of other servers.
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


def _with_json(text: str, made: Mapping[str, Any], file: Path) -> str:
    try:
        return set_member(text, ("mcpServers", NAME), dict(made))
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
        found = re.search(r"at line (\d+)", str(broken))
        line = found[1] if found else "?"
        raise ClientFileRefused(
            f"{file}:{line}: it is not TOML ({broken}); nothing was changed. Correct it first."
        ) from None


def _with_toml(client: McpClient, text: str, made: Mapping[str, Any], file: Path) -> str:
    found = _check_toml(text, file)
    servers = found.get("mcp_servers", {})
    if not isinstance(servers, dict):
        raise ClientFileRefused(f"{file}: mcp_servers is no table; nothing was changed. Correct it first.")
    # What a person set beside the command stays, such as timeouts.
    before = {name: value for name, value in servers.get(NAME, {}).items() if name != "env"}
    wanted = {**before, **made, **{name: before[name] for name in client.settings if name in before}}
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
    found = _check_toml(text, file)
    if NAME not in found.get("mcp_servers", {}):
        return text
    import tomlkit

    document = tomlkit.parse(text)
    del document["mcp_servers"][NAME]
    if not document["mcp_servers"]:
        del document["mcp_servers"]
    return tomlkit.dumps(document)


def _toml_table(made: Mapping[str, Any]) -> str:
    lines = [f"[mcp_servers.{NAME}]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in made.items() if name != "env"]
    if "env" in made:
        lines += [
            "",
            f"[mcp_servers.{NAME}.env]",
            *(f"{name} = {json.dumps(one)}" for name, one in made["env"].items()),
        ]
    return "\n".join(lines)
