"""A sandbox for programs of agents, by bubblewrap where it is installed (Linux): what they may write and reach.

Everything is read-only but the working directory, the scratch directory of the step, the clone that a worktree belongs
to, and folders that the operator names. `/tmp` is empty. The runner's own directory and the usual homes of credentials
are hidden. There is no network, unless the operator wants it: command lines that call their model need it. Processes
see only each other.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from redkey.errors import ConfigRefused

# Folders of the home directory that hold credentials of other programs.
_HIDDEN: Final = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".config/gcloud", ".config/gh")


class Sandbox:
    """Wraps commands; `online` lets them use the network. ConfigRefused where bubblewrap is missing or may not work."""

    def __init__(self, *, online: bool = False, hidden: Iterable[Path] = (), writable: Iterable[Path] = ()) -> None:
        program = shutil.which("bwrap")
        if program is None:
            text = "there is no bwrap on the PATH: install bubblewrap, or run the agent in a container of its own"
            raise ConfigRefused(text, code="sandbox_missing")
        self._program, self._online = program, online
        homes = [Path.home() / name for name in _HIDDEN]
        self._hidden = [path.resolve() for path in (*hidden, *homes) if path.exists()]
        self._writable = [path.resolve() for path in writable if path.exists()]
        tried = subprocess.run(  # noqa: S603
            self.wrap(["true"], Path("/")), capture_output=True, check=False, timeout=30
        )
        if tried.returncode:
            said = tried.stderr.decode("utf-8", "replace").strip()[-200:]
            raise ConfigRefused(f"bubblewrap does not work here: {said}", code="sandbox_missing")

    def wrap(self, command: Sequence[str], directory: Path, writable: Sequence[Path] = ()) -> list[str]:
        """The command that runs a command in the sandbox, in a directory that it may write."""
        wrapped = [
            self._program,
            *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
            *(() if self._online else ("--unshare-net",)),
            *("--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *("--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/dev/shm"),  # noqa: S108
        ]
        for path in self._hidden:
            # A file cannot be covered by an empty directory.
            wrapped += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
        places = [] if directory == Path("/") else [directory]
        for path in (*self._writable, *writable, *places):
            wrapped += ["--bind", str(path), str(path)]
        return [*wrapped, "--chdir", str(directory), "--", *command]
