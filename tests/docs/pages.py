"""Markdown pages as programs: their code blocks, run in order, in an empty folder, as a reader would.

    sh                 is run by bash; variables live on from block to block of a page
    sh background      is started and left running, in a terminal of its own, without the variables of the page
    python             is run
    json, toml         is read: it must be what it says
    python NAME        and sh NAME, json NAME, toml NAME, js NAME: the block is the file of that name
    text               right behind an sh or python block is what that block prints, where `...` stands for anything

What a page does in a clone is done with what is installed: `make run` is `redkey serve`, `.venv/bin` is on the PATH,
and examples are those of the checkout. `test_fresh_clone.py` follows README to the letter.

Other languages are for the eye: `mermaid`, `sql` (`tests/stores` runs the queries), and `text` elsewhere.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.ports import lasting_port

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 90
RUNNABLE = ("sh", "python", "json", "toml", "js")
_FENCE = re.compile(r"^```([a-z]*)([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The port that pages name. Pages run at the same time, so each gets one of its own in its place.
_PORT = "8700"


@dataclass(frozen=True)
class Block:
    """One code block: its language, the words behind it, its text, and the line it begins on."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int
    # Whether it stands right behind the block before, with nothing but blank lines between.
    adjoins: bool = False

    @property
    def file(self) -> str:
        return next((word for word in self.words if "." in word), "")


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page, in order."""
    text, found, end = page.read_text(), [], 0
    for match in _FENCE.finditer(text):
        adjoins = bool(found) and not text[end : match.start()].strip()
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(match[1], tuple(match[2].split()), match[3], line, adjoins))
        end = match.end()
    return found


class Reader:
    """Somebody who follows a page to the letter, in an empty folder, with an empty home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        home = folder / "home"
        home.mkdir()
        self.port = lasting_port()
        self.patience_seconds = PATIENCE_SECONDS
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        self.environment = {"HOME": str(home), "PATH": path, "REDKEY_PORT": str(self.port), "LANG": "C.UTF-8"}
        # Where the package is taken from, if not from the environment that runs the tests.
        self.environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        # Pages that build something from the sources say so by this name.
        self.environment["CHECKOUT"] = str(ROOT)
        self._variables = folder / "variables"
        self._started: list[subprocess.Popen[bytes]] = []
        self._log = folder / "background.log"

    def follow(self, page: Path, not_run: dict[tuple[str, int], str] | None = None) -> int:
        """Run a page; how many blocks were run."""
        run, printed = 0, None
        for block in blocks(page):
            where = f"{page.name}:{block.line}"
            text = _as_installed(block.text.replace(_PORT, str(self.port)))
            if block.language == "text" and block.adjoins and printed is not None:
                assert _like(text).fullmatch(printed), f"{where} shows\n{text}\nbut this was printed:\n{printed}"
            printed = None
            if not_run and not_run.get(key_of(page, block)):
                continue
            if block.language in RUNNABLE:
                printed = self._run(block, text, where)
                run += 1
        return run

    def run_as_written(self, block: Block) -> None:
        """Run one block of a page in a clone."""
        self._run(block, block.text, f"line {block.line}")

    def _run(self, block: Block, text: str, where: str) -> str | None:
        if block.file:
            (self.folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.file).write_text(text)
            if block.language == "python":
                compile(text, block.file, "exec")
            if block.language == "sh":
                self._finish(["sh", "-n", block.file], where)
            if block.language == "js":
                self._finish(["node", "--check", block.file], where)
        if block.language == "json":
            json.loads(text)
        elif block.language == "toml":
            tomllib.loads(text)
        elif block.language == "python" and not block.file:
            return self._finish([sys.executable, "-c", text], where)
        elif block.language == "sh" and "background" in block.words:
            self._start(text, where)
        elif block.language == "sh" and not block.file:
            known = f"set -a; [ ! -e '{self._variables}' ] || . '{self._variables}'\n"
            kept = f"\nexport -p > '{self._variables}'"
            return self._finish(["bash", "-euo", "pipefail", "-c", known + text + kept], where)
        return None

    def _finish(self, command: list[str], where: str) -> str:
        gone = [process.returncode for process in self._started if process.poll() is not None]
        assert gone == [], f"{where}: what should be running has ended with {gone}:\n{self._background()}"
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=self.patience_seconds,
            )
        except subprocess.TimeoutExpired as late:
            told = f"{where} did not end:\n{late.stdout!r}\n{late.stderr!r}\n{self._background()}"
            raise AssertionError(told) from None
        told = f"{where} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}\n{self._background()}"
        assert done.returncode == 0, told
        return done.stdout

    def _start(self, text: str, where: str) -> None:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._started.append(process)
        if "redkey serve" in text or "make run" in text:
            self._wait_for(self._server_answers, process, where)
        elif "redkey bus serve" in text:
            # The bus writes where its HTTP face is once it answers.
            self._wait_for((Path(self.environment["HOME"]) / ".weave" / "http.json").exists, process, where)

    def _server_answers(self) -> bool:
        """Whether a request is answered: the port takes connections long before, and the first key is not there yet."""
        asking = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            asking.request("GET", "/healthz")
            return asking.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            asking.close()

    def _wait_for(self, ready: Callable[[], bool], process: subprocess.Popen[bytes], where: str) -> None:
        """A reader sees when a server has come up; here somebody has to look."""
        deadline = time.monotonic() + self.patience_seconds
        while not ready():
            gone = process.poll() is not None or time.monotonic() > deadline
            assert not gone, f"{where}: the server did not come up\n{self._background()}"
            time.sleep(0.05)

    def _background(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def leave(self) -> None:
        """End what was left running, the servers last."""
        for process in reversed(self._started):
            for number in (signal.SIGTERM, signal.SIGKILL):
                if _signal_group(process, number):
                    try:
                        process.wait(20)
                    except subprocess.TimeoutExpired:
                        continue
            process.wait()


def _as_installed(text: str) -> str:
    """A block of a clone, for a folder that is none."""
    text = re.sub(r"^make run$", "redkey serve", text, flags=re.MULTILINE)
    text = text.replace(".venv/bin/python examples/", '.venv/bin/python "$CHECKOUT"/examples/')
    # Not inside a longer path, which is meant as it stands.
    return re.sub(r"(?<![\w/.-])\.venv/bin/", "", text)


def key_of(page: Path, block: Block) -> tuple[str, str]:
    """How the list of blocks that are not run names one: its page and its first line."""
    return page.relative_to(ROOT).as_posix(), block.text.splitlines()[0] if block.text else ""


def _signal_group(process: subprocess.Popen[Any], number: int) -> bool:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def _like(text: str) -> re.Pattern[str]:
    """What a shown output stands for."""
    return re.compile(".*".join(re.escape(part) for part in text.split("...")), re.DOTALL)
