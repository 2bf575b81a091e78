"""Sandboxes for agents' programs: bubblewrap (Linux) or a container limits what they can write and reach.

With bubblewrap everything is read-only except the working directory, the scratch directory of the step, the clone of a
worktree, and folders that the operator names. `/tmp` is empty. The runner's own directory and the usual folders of
credentials are hidden. There is no network unless the operator allows it; command lines that call their model need it.
Processes see only each other. A container has the files of its image, and only the writable folders of the machine.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Protocol

from redkey.errors import ConfigRefused
from redkey.runner.process import Guarded

# Folders of the home directory that hold credentials of other programs.
_HIDDEN: Final = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".config/gcloud", ".config/gh")
_CLIENTS: Final = ("docker", "podman")
# Variables that describe this machine and have no meaning in an image.
_OF_THE_MACHINE: Final = frozenset({"PATH", "HOME", "SHELL", "USER", "LOGNAME"})


class Sandbox(Protocol):
    """Wraps commands so that they run with limited access."""

    def wrap(self, command: Sequence[str], directory: Path, writable: Sequence[Path] = ()) -> Sequence[str] | Guarded:
        """Return the command that runs `command` in the sandbox, with write access to its directory."""
        ...


class Bubblewrap:
    """Runs commands in bubblewrap; `online` allows the network. ConfigRefused if bubblewrap does not work here."""

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
        """Return the command that runs `command` in the sandbox, with write access to its directory."""
        wrapped = [
            self._program,
            *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
            *(() if self._online else ("--unshare-net",)),
            *("--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *("--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/dev/shm"),  # noqa: S108
        ]
        for path in self._hidden:
            # An empty directory cannot hide a file.
            wrapped += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
        places = [] if directory == Path("/") else [directory]
        for path in (*self._writable, *writable, *places):
            wrapped += ["--bind", str(path), str(path)]
        return [*wrapped, "--chdir", str(directory), "--", *command]


class Container:
    """Runs commands in containers of an image, with docker or podman; ConfigRefused if no engine answers.

    The root file system is read-only, the user is the runner's, and there are no capabilities. Of the machine's folders
    only the writable ones are mounted. The guard removes the container, because it belongs to the engine and outlives
    its client.
    """

    def __init__(self, image: str, *, online: bool = False, writable: Iterable[Path] = ()) -> None:
        client = next((found for name in _CLIENTS if (found := shutil.which(name))), None)
        if client is None:
            text = f"there is neither {' nor '.join(_CLIENTS)} on the PATH, which --sandbox-image needs"
            raise ConfigRefused(text, code="sandbox_missing")
        self._client, self._image, self._online = client, image, online
        self._writable = [path.resolve() for path in writable if path.exists()]
        tried = subprocess.run([client, "version"], capture_output=True, check=False, timeout=60)  # noqa: S603
        if tried.returncode:
            said = tried.stderr.decode("utf-8", "replace").strip()[-200:]
            raise ConfigRefused(f"the container engine does not answer: {said}", code="sandbox_missing")

    def wrap(self, command: Sequence[str], directory: Path, writable: Sequence[Path] = ()) -> Guarded:
        """Return the command for one container; its name is chosen here, so that the guard can remove it."""
        name = f"redkey-{secrets.token_hex(8)}"
        places = dict.fromkeys(str(path) for path in (*self._writable, *writable, directory))

        def build(variables: Iterable[str]) -> list[str]:
            passed = sorted(set(variables) - _OF_THE_MACHINE)
            return [
                *(self._client, "run", "--rm", "--interactive", "--init", "--name", name),
                *("--network", "bridge" if self._online else "none"),
                *("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"),  # noqa: S108
                *("--security-opt", "no-new-privileges", "--user", f"{os.getuid()}:{os.getgid()}"),
                *(word for place in places for word in ("--volume", f"{place}:{place}")),
                *(word for variable in passed for word in ("--env", variable)),
                *("--workdir", str(directory), self._image, *command),
            ]

        return Guarded(build, (self._client, "rm", "--force", name))
