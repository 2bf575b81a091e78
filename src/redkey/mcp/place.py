"""The server for a coding agent in a directory: found by variables or by its project, or started there.

A project is the git repository around the directory; all its worktrees share the data directory of the first one. A
`.redkey` directory that came with a checkout is not trusted: its credentials count only if they belong to this user, no
other user can read them, and they name a server on this machine. See docs/decisions/0121.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from redkey.client import RedKey
from redkey.client.settings import find_settings, is_local
from redkey.config import CREDENTIALS, DEFAULT_PORT, Credentials, read_credentials
from redkey.errors import ClientError, ConfigRefused

DATA = ".redkey"
_START_SECONDS = 40.0
_LOOK_SECONDS = 0.1
_LOG = "serve.log"
# The file that a server started here keeps while it runs; it contains the process id.
READY = "serve.json"


@dataclass(frozen=True)
class ServerPlace:
    """A server and the key that registers agents there. Keys of agents are stored under `identity`."""

    url: str
    api_key: str
    identity: str
    # Its data directory, if that is on this machine.
    data: Path | None = None

    def __repr__(self) -> str:
        """Without the key, because this may be logged."""
        return f"ServerPlace({self.url!r})"


def project_root(directory: Path) -> Path:
    """The project of a directory: the first worktree of its git repository, or the directory itself."""
    for folder in (directory, *directory.parents):
        mark = folder / ".git"
        if mark.is_dir():
            return folder
        if mark.is_file():
            return _first_worktree(mark) or folder
    return directory


def _first_worktree(mark: Path) -> Path | None:
    """The first worktree of the repository of a linked worktree with this `.git` file; None unless git created both."""
    try:
        linked = Path(mark.read_text().removeprefix("gitdir:").strip())
        linked = linked if linked.is_absolute() else (mark.parent / linked).resolve()
        # The file could be forged and point anywhere; git's own directory points back to it.
        if Path((linked / "gitdir").read_text().strip()) != mark or linked.parent.name != "worktrees":
            return None
    except (OSError, ValueError):
        return None
    return linked.parents[2] if linked.parents[1].name == ".git" else None


def project_name(directory: Path) -> str:
    """A short name of the project, for agents and sessions."""
    return re.sub(r"[^a-z0-9]+", "-", project_root(directory).name.lower()).strip("-")[:14] or "project"


def find_place(directory: Path, environment: Mapping[str, str], *, start: bool = True) -> ServerPlace:
    """The server for a directory; the project's own server is started if it is not running."""
    if environment.get("REDKEY_URL"):
        settings = find_settings(None, None, None, environment)
        return ServerPlace(settings.shown_url, settings.api_key, f"url:{settings.shown_url}")
    named = environment.get("REDKEY_DATA")
    data = Path(named).expanduser() if named else project_root(directory) / DATA
    data = data.absolute()
    if not named:
        check_own(data)
    credentials = _running(data)
    if credentials is None:
        if not start:
            raise ConfigRefused(
                f"no RedKey server is running for {data.parent}: start one with redkey serve --data {data}"
            )
        credentials = start_server(data)
    return ServerPlace(credentials.url, credentials.api_key, f"data:{data.resolve()}", data)


def check_own(data: Path) -> None:
    """Refuse credentials that came with a checkout, or that other users could have written."""
    file = data / CREDENTIALS
    try:
        file_status, folder_status = file.lstat(), data.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    advice = "To use it anyway, name it in REDKEY_DATA, or set REDKEY_URL and REDKEY_API_KEY."
    if file_status.st_uid != os.geteuid() or folder_status.st_uid != os.geteuid():
        raise ConfigRefused(f"{file} belongs to another user and is not used. {advice}", code="credentials_not_own")
    if file_status.st_mode & 0o077 or folder_status.st_mode & 0o022:
        raise ConfigRefused(
            f"{file} can be read or changed by others, so it may have come with the checkout; it is not used. {advice}",
            code="credentials_not_own",
        )
    credentials = read_credentials(data)
    if credentials is not None and not is_local(credentials.url):
        raise ConfigRefused(
            f"{file} names the server {credentials.url}, which is not on this machine; it is not used. {advice}",
            code="credentials_not_own",
        )


def _running(data: Path) -> Credentials | None:
    """The credentials of the server of this data directory, if it answers."""
    credentials = read_credentials(data)
    if credentials is None:
        return None
    try:
        with RedKey(credentials.url, credentials.api_key, timeout=5, max_retries=0) as rk:
            rk.workspaces.list(limit=1).page()
    except ClientError:
        return None
    return credentials


def start_server(data: Path) -> Credentials:
    """Start a server for a data directory unless another process just did; it keeps running when this process ends."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignored = data / ".gitignore"
        if not ignored.exists():
            # Keys and data must not be committed to the project.
            ignored.write_text("*\n")
        with _locked(data / "start.lock"):
            return _running(data) or _start(data)
    except OSError as cause:
        raise ConfigRefused(
            f"no RedKey server is running, and none can be started in {data}: {cause.strerror or cause}. Run redkey "
            "serve --data DIR elsewhere and set REDKEY_DATA=DIR."
        ) from cause


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _start(data: Path) -> Credentials:
    port = _free_port(read_credentials(data))
    credentials = _start_at(data, port)
    if credentials is None and not _is_free(port):
        # Another process took the port after it was found free; now the system chooses one.
        credentials = _start_at(data, 0)
    if credentials is None:
        raise _not_started(data)
    return credentials


def _start_at(data: Path, port: int) -> Credentials | None:
    """Start a server at a port, and wait until it answers; None if it has ended."""
    kept = {name: value for name, value in os.environ.items() if name not in ("REDKEY_URL", "REDKEY_API_KEY")}
    command = [sys.executable, "-m", "redkey", "serve"]
    with (data / _LOG).open("ab") as log:
        process = subprocess.Popen(  # noqa: S603
            [*command, "--data", str(data), "--port", str(port), "--ready-file", str(data / READY)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=data.parent,
            env=kept,
            # A session of its own: the client that started it may end first.
            start_new_session=True,
        )
    ends_at = time.monotonic() + _START_SECONDS
    while time.monotonic() < ends_at:
        credentials = _running(data)
        if credentials is not None:
            # Python warns about a child that was not waited for; this one keeps running on purpose.
            process.returncode = 0
            return credentials
        if process.poll() is not None:
            return None
        time.sleep(_LOOK_SECONDS)
    raise _not_started(data)


def _not_started(data: Path) -> ConfigRefused:
    last = (data / _LOG).read_text(errors="replace").strip().splitlines()[-1:]
    return ConfigRefused(
        f"a RedKey server could not be started in {data}: {' '.join(last)[:300]}. Start it by hand with redkey serve "
        f"--data {data}; its log is {data / _LOG}."
    )


def _free_port(before: Credentials | None) -> int:
    """The port that the server used before, so that its callers find it again; else the default port, else any."""
    earlier = urlsplit(before.url).port if before is not None else None
    return next((port for port in (earlier, DEFAULT_PORT) if port and _is_free(port)), 0)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
