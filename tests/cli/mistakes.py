"""A server with something of everything on it, for mistakes to be made with."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from click.testing import CliRunner, Result

from redkey.cli import main
from tests.harness.server import serving

PATIENCE_SECONDS = 120
_CYCLE = {"id": "a", "title": "A", "dependsOn": ["b"]}, {"id": "b", "title": "B", "dependsOn": ["a"]}
_FILES = {
    "unknown.toml": "prot = 1\n",
    "typed.toml": 'port = "high"\n',
    "broken.toml": "port 8700\n",
    "cycle.json": json.dumps({"name": "c", "version": "1.0", "tasks": _CYCLE}),
    "card.json": json.dumps({"name": "x", "nme": "y"}),
    "typo.json": json.dumps({"identty": {}}),
    "a-file": "",
    "large.json": json.dumps("x" * 2_000_000),
    "secret.json": json.dumps({"key": "AKIAIOSFODNN7EXAMPLE"}),
}


def invoke(*arguments: str, **environment: str | None) -> Result:
    """Call the command in this process, in a shell without a setting of RedKey but these."""
    clean = {name: None for name in os.environ if name.startswith("REDKEY_")}
    return CliRunner().invoke(main, arguments, env={**clean, "COLUMNS": "200", **environment}, prog_name="redkey")


class Scene:
    """What the mistakes speak of, by name."""

    def __init__(self, folder: Path, server: Any, other: Any) -> None:
        self.folder, self.server = folder, server
        self._account = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
        for name, text in _FILES.items():
            (folder / name).write_text(text)
        for words in ("queue create jobs", "queue create shut", "role create writer"):
            self.does(words)
        ada, bo = (json.loads(self.does(f"agent register {name} --json")) for name in ("ada", "bo"))
        self.does("role grant writer ada")
        cy = json.loads(self.does("agent register cy --role writer --no-key --json"))
        # As an agent that works by its own key is: the ledger says so.
        agent = {**self._account, "REDKEY_API_KEY": ada["apiKey"]}
        self.held = self.task("--queue jobs --role writer --output report")
        claim = json.loads(self.does(f"claim take {self.held} --agent ada --lease 600 --json", agent))["claimId"]
        self.open, self.parked = self.task("--queue jobs --role writer"), self.task("--queue shut")
        self.does("queue pause shut")
        done = self.task("--queue jobs")
        done_claim = self.does(f"claim take {done} --agent ada -q", agent).strip()
        self.does(f"claim complete {done_claim}", agent)
        gated = self.task("--queue jobs --gate")
        self.does(f"claim complete {self.does(f'claim take {gated} --agent ada -q', agent).strip()}", agent)
        late = self.task("--queue jobs")
        self.late_claim = self.does(f"claim take {late} --agent ada --lease 5 -q", agent).strip()
        self.late = late
        revoked = json.loads(self.does("key create --scope read --json"))
        self.does(f"key revoke {revoked['keyId']}")
        self.words = {
            **{name.replace(".", "_").replace("-", "_"): str(folder / name) for name in _FILES},
            "held": self.held,
            "open": self.open,
            "parked": self.parked,
            "done": done,
            "claim": claim,
            "done_claim": done_claim,
            "gate": self.does("gate list -q").strip(),
            "late_claim": self.late_claim,
            "agent": ada["agentId"],
            "cy": cy["agentId"],
            "ada_key": ada["apiKey"],
            "bo_key": bo["apiKey"],
            "revoked_key": revoked["apiKey"],
            "foreign_key": other.key,
            "foreign_url": other.url,
            "url": server.url,
            "port": server.url.rpartition(":")[2],
            "data": str(server.data),
            "folder": str(folder),
            "short": self.held[:6],
        }
        # A workspace whose policy forbids that those who did the work approve it.
        strict = json.loads(self.does("workspace create --name strict --json"))
        alone = {**self._account, "REDKEY_API_KEY": strict["apiKey"]}
        self.does("workspace policy --no-self-approval", alone)
        self.does("agent register eve --no-key", alone)
        own = self.does("task create --title T --gate", alone).strip()
        self.does(f"claim complete {self.does(f'claim take {own} --agent eve -q', alone).strip()}", alone)
        self.words |= {"own_gate": self.does("gate list -q", alone).strip(), "alone_key": strict["apiKey"]}
        self._data_directories(server)
        self.does(f"backup {server.data} {folder}/backup")

    def _data_directories(self, server: Any) -> None:
        """A directory whose server is gone, one that was restored, and one of a newer RedKey."""
        for name in ("dead", "restored", "newer"):
            (self.folder / name).mkdir(mode=0o700)
        known = json.loads((server.data / "credentials.json").read_text())
        dead = self.folder / "dead" / "credentials.json"
        dead.write_text(json.dumps({**known, "url": "http://127.0.0.1:9", "uds": None}))
        dead.chmod(0o600)
        (self.folder / "restored" / "redkey.db").touch()
        newer = sqlite3.connect(self.folder / "newer" / "redkey.db")
        with closing(newer), closing(sqlite3.connect(server.data / "redkey.db")) as live:
            live.backup(newer)
            newer.execute("PRAGMA user_version = 9999")

    def does(self, words: str, environment: Mapping[str, str] | None = None) -> str:
        """Call a command that must succeed; what it printed."""
        result = invoke(*words.split(), **(environment or self._account))
        assert result.exit_code == 0, (words, result.output)
        return result.stdout

    def task(self, options: str) -> str:
        return self.does(f"task create --title T {options}").strip()

    def makes(self, words: str, environment: Mapping[str, str | None]) -> Result:
        """Make a mistake: words and environment with what is in braces filled in."""
        filled = [word.format(**self.words) for word in words.split()]
        given = {name: value.format(**self.words) if value else value for name, value in environment.items()}
        return invoke(*filled, **{**self._account, **given})

    def runs_after(self, prepared: str, words: str) -> subprocess.CompletedProcess[str]:
        """Call a command in a process of its own, once something of Python was prepared there."""
        return self._run(["-c", f"{prepared}\nfrom redkey.cli import main; main({words.split()!r})"], {})

    def runs(self, words: str, environment: Mapping[str, str | None]) -> subprocess.CompletedProcess[str]:
        """Make a mistake in a process of its own."""
        return self._run(["-m", "redkey", *(word.format(**self.words) for word in words.split())], environment)

    def _run(self, arguments: list[str], environment: Mapping[str, str | None]) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
        given = {name: value.format(**self.words) for name, value in environment.items() if value}
        return subprocess.run(
            [sys.executable, *arguments],
            env={**clean, **self._account, **given},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_SECONDS,
        )


@contextmanager
def scene_of(folder: Path) -> Iterator[Scene]:
    """Two servers, of which the second one belongs to another user."""
    (folder / "one").mkdir()
    (folder / "two").mkdir()
    with (
        _answering(_Strange) as strange_url,
        _answering(_Newer) as newer_url,
        serving(folder / "one") as server,
        serving(folder / "two") as other,
    ):
        scene = Scene(folder, server, other)
        scene.words |= {"strange_url": strange_url, "newer_url": newer_url}
        yield scene


@contextmanager
def _answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A server that is not ours; its URL."""
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Newer(BaseHTTPRequestHandler):
    """A RedKey of another version, which has other paths."""

    def do_GET(self) -> None:
        if self.path == "/readyz":
            self._answer(200, {"status": "ready", "store": "SQLite 9", "version": "9.9.0"})
        else:
            problem = {"title": "Not Found", "status": 404, "code": "path_not_found", "detail": "No such path."}
            self._answer(404, problem)

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


class _Strange(BaseHTTPRequestHandler):
    """A server that knows no path of RedKey's."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""
