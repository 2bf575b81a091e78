"""`redkey mcp install`: client files are merged, never overwritten; a broken one is refused with its line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.mcp.clients import CLIENTS, ClientFileRefused, entry, install, uninstall
from redkey.mcp.json_text import JsonBroken, remove_member, set_member

COMMENTED = """\
{
  // The servers of our team.
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files"] }, // keep
    /* and this one */
    "search": {
      "command": "search"
    } // last
  },
  "theme": "dark",
}
"""
CODEX = """\
# My settings.
model = "gpt-5"   # fast

[mcp_servers.files]
command = "npx"  # do not touch
args = ["-y", "files"]

[profiles.work]
model = "gpt-5"
"""


@pytest.mark.parametrize("client", ["claude-code", "cursor", "gemini"])
def test_a_json_file_keeps_its_comments_order_and_other_servers(client: str, tmp_path: Path) -> None:
    file, chosen = tmp_path / "deep" / "settings.json", CLIENTS[client]
    file.parent.mkdir()
    file.write_text(COMMENTED)
    file.chmod(0o640)
    assert install(chosen, file, entry(chosen))
    merged = file.read_text()
    for kept in ("// The servers of our team.", "// keep", "/* and this one */", "// last", '"theme": "dark",'):
        assert kept in merged
    assert merged.index('"files"') < merged.index('"search"') < merged.index('"redkey"') < merged.index('"theme"')
    assert file.stat().st_mode & 0o777 == 0o640
    assert not install(chosen, file, entry(chosen)), "the second time changes nothing"
    assert install(chosen, file, entry(chosen, ("--queue", "other")))
    assert '"other"' in file.read_text()
    assert uninstall(chosen, file)
    assert not uninstall(chosen, file)
    without = file.read_text()
    assert '"redkey"' not in without
    for kept in ("// The servers of our team.", "// keep", "/* and this one */", "// last"):
        assert kept in without


def test_a_new_file_is_written_and_can_be_undone(tmp_path: Path) -> None:
    file, chosen = tmp_path / ".mcp.json", CLIENTS["claude-code"]
    assert install(chosen, file, entry(chosen))
    written = json.loads(file.read_text())["mcpServers"]["redkey"]
    assert written == {"type": "stdio", "command": sys.executable, "args": ["-m", "redkey", "mcp"]}
    assert Path(written["command"]).is_absolute()
    assert uninstall(chosen, file)
    assert json.loads(file.read_text()) == {"mcpServers": {}}


def test_the_file_of_codex_keeps_its_comments_and_tables(tmp_path: Path) -> None:
    file, chosen = tmp_path / "config.toml", CLIENTS["codex"]
    file.write_text(CODEX)
    assert install(chosen, file, entry(chosen, (), {"REDKEY_URL": "http://127.0.0.1:8700"}))
    merged = file.read_text()
    for kept in ("# My settings.", "# fast", "# do not touch", "[profiles.work]"):
        assert kept in merged
    servers = tomllib.loads(merged)["mcp_servers"]
    assert servers["redkey"]["env"] == {"REDKEY_URL": "http://127.0.0.1:8700"}
    assert servers["redkey"]["required"] is True, "else Codex asks its model before the server has started"
    assert servers["files"]["args"] == ["-y", "files"]
    assert not install(chosen, file, entry(chosen, (), {"REDKEY_URL": "http://127.0.0.1:8700"}))
    assert uninstall(chosen, file)
    assert tomllib.loads(file.read_text()) == tomllib.loads(CODEX)


def test_what_a_person_set_for_codex_stays(tmp_path: Path) -> None:
    file, chosen = tmp_path / "config.toml", CLIENTS["codex"]
    file.write_text('[mcp_servers.redkey]\ncommand = "old"\nrequired = false\ntool_timeout_sec = 90\n')
    assert install(chosen, file, entry(chosen))
    written = tomllib.loads(file.read_text())["mcp_servers"]["redkey"]
    assert (written["required"], written["tool_timeout_sec"], written["startup_timeout_sec"]) == (False, 90, 60)
    assert written["command"] == sys.executable
    assert not install(chosen, file, entry(chosen)), "the second time changes nothing"


@pytest.mark.parametrize(
    ("client", "text", "line"),
    [
        ("cursor", '{\n  "mcpServers": {\n    "files" {}\n  }\n}\n', 3),
        ("gemini", '{\n  "a": 1\n  "b": 2\n}\n', 3),
        ("claude-code", "[]\n", 1),
        ("claude-code", '{"mcpServers": []}', 1),
        ("claude-code", "{} {}", 1),
        ("codex", 'model = "x"\n[broken\n', 2),
    ],
)
def test_a_broken_file_is_refused_with_its_line_and_stays(client: str, text: str, line: int, tmp_path: Path) -> None:
    file, chosen = tmp_path / "file", CLIENTS[client]
    file.write_text(text)
    with pytest.raises(ClientFileRefused) as refused:
        install(chosen, file, entry(chosen))
    assert f"{file}:{line}: " in refused.value.message
    assert file.read_text() == text


def test_a_file_behind_a_link_is_changed_and_the_link_stays(tmp_path: Path) -> None:
    real, link, chosen = tmp_path / "dotfiles.json", tmp_path / ".mcp.json", CLIENTS["claude-code"]
    real.write_text("{}")
    link.symlink_to(real)
    assert install(chosen, link, entry(chosen))
    assert link.is_symlink()
    assert "redkey" in json.loads(real.read_text())["mcpServers"]


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), Json, max_size=4), st.sampled_from([None, 1, 2, "\t"]), Json)
def test_setting_and_removing_a_member_changes_nothing_else(
    document: dict[str, object], indent: int, value: object
) -> None:
    text = json.dumps(document, indent=indent)
    after = set_member(text, ("mcp~Servers", "red~key"), value)
    assert json.loads(after) == {**document, "mcp~Servers": {"red~key": value}}
    assert json.loads(remove_member(after, ("mcp~Servers", "red~key"))) == {**document, "mcp~Servers": {}}


@given(st.text(alphabet='{}[]":,/*1a \n', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(JsonBroken):
        assert set_member(set_member(text, ("a",), 1), ("a",), 1) == set_member(text, ("a",), 1)


def redkey(*words: str, directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(directory), **variables}
    command = [sys.executable, "-m", "redkey", "mcp", *words]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, timeout=120)


def test_the_commands_write_show_and_undo(tmp_path: Path) -> None:
    done = redkey("install", "claude-code", "--no-start", "--role", "reviewer", directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Wrote the server redkey to" in done.stdout
    assert "hint: start claude here" in done.stdout
    written = json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["redkey"]
    assert written["args"] == ["-m", "redkey", "mcp", "--role", "reviewer"]
    assert (
        "already in" in redkey("install", "claude-code", "--no-start", "--role", "reviewer", directory=tmp_path).stdout
    )
    assert json.loads(redkey("config", "cursor", directory=tmp_path).stdout)["mcpServers"]["redkey"]["command"]
    shown = tomllib.loads(redkey("config", "codex", directory=tmp_path).stdout)["mcp_servers"]["redkey"]
    assert (shown["args"][-1], shown["required"], shown["startup_timeout_sec"]) == ("mcp", True, 60)
    assert "Removed" in redkey("uninstall", "claude-code", directory=tmp_path).stdout
    (tmp_path / ".mcp.json").write_text("{,}")
    refused = redkey("install", "claude-code", "--no-start", directory=tmp_path)
    assert refused.returncode == 1
    assert ".mcp.json:1: " in refused.stderr
