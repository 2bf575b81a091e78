"""Working directories: the runner creates and removes one for each claim, empty or a git worktree.

A killed runner leaves its directories behind. Each has a locked file beside it, so the next runner on the same root
recognises unused directories and removes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import msgspec

from redkey.discovery import keep_out_of_repositories
from redkey.errors import StepFailed, WireRefused, WorkplaceRefused
from redkey.runner.process import Ended, Limits, run
from redkey.runner.repositories import is_clone
from redkey.wire.step_paths import resolve_inside

# Git removes its lock files when it gets SIGTERM. A killed git leaves them, and the repository is blocked until they
# are removed by hand.
_GIT_LIMITS: Final = Limits(seconds=600.0, output_bytes=1024 * 1024, orphan_seconds=5.0)
# An interrupted push may change the files of a checked-out branch without moving the branch.
PUSH_LIMITS: Final = Limits(
    seconds=600.0, output_bytes=1024 * 1024, grace_seconds=60.0, orphan_seconds=60.0, finishes=True
)
# No prompts, no settings of the machine, no hooks, and only transports that run no commands.
_GIT_ENVIRONMENT: Final[Mapping[str, str]] = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ALLOW_PROTOCOL": "file:https:ssh",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.hooksPath",
    "GIT_CONFIG_VALUE_0": os.devnull,
    "LC_ALL": "C",
    # Commits in a worktree are made by an agent, not by the user of this machine.
    "GIT_AUTHOR_NAME": "RedKey agent",
    "GIT_AUTHOR_EMAIL": "agent@redkey.invalid",
    "GIT_COMMITTER_NAME": "RedKey agent",
    "GIT_COMMITTER_EMAIL": "agent@redkey.invalid",
}


class Place(msgspec.Struct, frozen=True):
    """A working directory; for a worktree also its branch and the commit it started from."""

    directory: Path
    base: str = ""
    branch: str = ""
    # For a worktree: the URL it was fetched from, its clone, and the branch it started from.
    url: str = ""
    clone: Path | None = None
    target: str = ""
    # Further writable directories: the worktree, if `directory` is a folder of it, and its clone.
    beside: tuple[Path, ...] = ()
    # Whether the clone is the user's own.
    own_clone: bool = False
    # Whether other tasks work in the same directory.
    shared: bool = False

    @property
    def top(self) -> Path:
        """The top of the worktree, or the directory itself."""
        return self.beside[0] if self.beside else self.directory


class Workplace:
    """Creates working directories under one root. `repositories` are prefixes of URLs that may be cloned.

    With `own_clone`, worktrees of a local repository belong to it and not to a clone under the root.
    """

    def __init__(
        self,
        root: Path,
        *,
        repositories: Sequence[str] = (),
        shared: Path | None = None,
        own_clone: bool = False,
    ) -> None:
        local = [str(Path(one).resolve()) if one and Path(one).is_dir() else one for one in repositories]
        self._root, self._repositories, self._shared = root, tuple(local), shared
        # Tasks that name no repository use the local one.
        self._default = next((one for one in local if one and is_clone(Path(one))), None)
        try:
            (root / "places").mkdir(parents=True, exist_ok=True)
            (root / "repositories").mkdir(exist_ok=True)
            keep_out_of_repositories(root)
        except OSError as cause:
            raise WorkplaceRefused(f"{root} cannot be used: {cause.strerror}") from cause
        if shared is not None and not shared.is_dir():
            raise WorkplaceRefused(f"{shared} is not a directory")
        self._root = root.resolve()
        self._own_clone = own_clone
        if own_clone and self._default is None:
            raise WorkplaceRefused("--own-clone needs a --repo that is a clone on this machine", code="clone_missing")

    def sweep(self) -> int:
        """Remove the directories of runners that have ended; return how many."""
        removed = 0
        clones = [*(self._root / "repositories").glob("*.git")]
        clones += [Path(self._default)] if self._own_clone and self._default else []
        for lock in sorted((self._root / "places").glob("*.lock")):
            with contextlib.suppress(BlockingIOError, FileNotFoundError), locked(lock, wait=False):
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink(missing_ok=True)
                removed += 1
        for clone in clones if removed else ():
            environment = {**_GIT_ENVIRONMENT, "PATH": os.environ.get("PATH", os.defpath), "HOME": str(clone)}
            prune = ["git", "worktree", "prune"]
            subprocess.run(prune, cwd=clone, env=environment, capture_output=True, check=False)  # noqa: S603
        return removed

    @contextlib.asynccontextmanager
    async def place(
        self, name: str, repository: str | None = None, *, within: str | None = None, target: str | None = None
    ) -> AsyncIterator[Place]:
        """Create a working directory for one claim, and remove it when the block ends.

        For a worktree, `within` is the folder to work in and `target` the branch to start from (default: its HEAD).
        """
        if self._shared is not None:
            head = await git("rev-parse", "--verify", "--quiet", "HEAD", within=self._shared, check=False)
            yield Place(self._shared, head.output.decode().strip(), shared=True)
            return
        repository = repository or self._default
        directory = self._root / "places" / name
        with locked(directory.with_suffix(".lock"), wait=False):
            clone: Path | None = None
            try:
                if repository is not None:
                    place = await self._worktree(directory, name, repository, target)
                    clone = place.clone
                    yield msgspec.structs.replace(place, directory=_folder(directory, within))
                else:
                    try:
                        directory.mkdir()
                    except OSError as cause:
                        raise WorkplaceRefused(f"{directory} cannot be created: {cause.strerror}") from cause
                    yield Place(directory)
            finally:
                await asyncio.shield(asyncio.to_thread(self._remove, directory))
                if clone is not None:
                    await asyncio.shield(git("worktree", "prune", within=clone, check=False))
                    if self._own_clone:
                        # This deletes only a branch without commits of its own, so no work is lost.
                        await asyncio.shield(git("branch", "-d", f"redkey/{name}", within=clone, check=False))

    def _remove(self, directory: Path) -> None:
        shutil.rmtree(directory, ignore_errors=True)
        directory.with_suffix(".lock").unlink(missing_ok=True)

    async def _worktree(self, directory: Path, name: str, url: str, target: str | None) -> Place:
        if not may_clone(url, self._repositories):
            text = f"the repository {url[:200]!r} is not among those this runner may clone"
            raise WorkplaceRefused(text, code="repository_not_allowed")
        if self._own_clone and url == self._default:
            return await self._own_worktree(directory, f"redkey/{name}", url, target)
        clone = self._root / "repositories" / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.git"
        branch = f"redkey/{name}"
        lock = clone.with_suffix(".lock")
        async with locked_in_thread(lock):
            if not (clone / "config").exists():
                await self._git("init", "--quiet", "--bare", str(clone))
            # Commits that the agent makes itself get the same name.
            await self._git("config", "user.name", "RedKey agent", within=clone)
            await self._git("config", "user.email", "agent@redkey.invalid", within=clone)
            head = (await self._git("ls-remote", "--symref", url, "HEAD", within=clone)).output.decode()
            default = next((line.split()[1] for line in head.splitlines() if line.startswith("ref: ")), "")
            default = f"refs/heads/{target}" if target else default
            if not default:
                raise WorkplaceRefused(f"{url[:200]!r} has no default branch to work from", code="repository_empty")
            fetched = f"+{default}:refs/remotes/origin/{default.removeprefix('refs/heads/')}"
            await self._git("fetch", "--quiet", "--no-tags", url, fetched, within=clone)
            start = f"refs/remotes/origin/{default.removeprefix('refs/heads/')}"
            await self._git("worktree", "prune", within=clone)
            await self._git("worktree", "add", "--quiet", "-b", branch, str(directory), start, within=clone)
        base = (await self._git("rev-parse", "HEAD", within=directory)).output.decode().strip()
        target = default.removeprefix("refs/heads/")
        return Place(directory, base, branch, url, clone, target, beside=(directory, clone))

    async def _own_worktree(self, directory: Path, branch: str, url: str, target: str | None) -> Place:
        """Create a worktree of the user's own clone, from its current local branch."""
        repository = Path(url)
        target = target or (await git("symbolic-ref", "--short", "HEAD", within=repository)).output.decode().strip()
        found = await git("rev-parse", "--path-format=absolute", "--git-common-dir", within=repository)
        clone = Path(found.output.decode().strip())
        async with locked_in_thread(self._root / "repositories" / "own-clone.lock"):
            start = f"refs/heads/{target}"
            await self._git("worktree", "add", "--quiet", "-b", branch, str(directory), start, within=repository)
        base = (await self._git("rev-parse", "HEAD", within=directory)).output.decode().strip()
        return Place(directory, base, branch, url, clone, target, beside=(directory, clone), own_clone=True)

    async def _git(self, *arguments: str, within: Path | None = None) -> Ended:
        return await git(*arguments, within=within or self._root)


def may_clone(url: str, prefixes: Sequence[str]) -> bool:
    """Return whether a prefix allows this URL. A prefix matches whole path segments; an empty one matches all.

    A URL with `.` or `..` in its path is refused, because it may lead out of its prefix.
    """
    if url.startswith("-") or not {".", ".."}.isdisjoint(re.split(r"[/:]", unquote(url))):
        return False
    for prefix in prefixes:
        # "git@host:" ends at a segment as "https://host/" does. Behind "https://host:" a user name could follow.
        whole = prefix.endswith("/") or (prefix.endswith(":") and "://" not in prefix)
        if not prefix or url == prefix or url.startswith(prefix if whole else f"{prefix}/"):
            return True
    return False


async def git(
    *arguments: str, within: Path, check: bool = True, limits: Limits = _GIT_LIMITS, held: Sequence[int] = ()
) -> Ended:
    """Run git without the settings, hooks and prompts of the machine and its user."""
    environment = {**_GIT_ENVIRONMENT, "PATH": os.environ.get("PATH", os.defpath), "HOME": str(within)}
    if "SSH_AUTH_SOCK" in os.environ:
        environment["SSH_AUTH_SOCK"] = os.environ["SSH_AUTH_SOCK"]
    try:
        ended = await run(["git", *arguments], directory=within, environment=environment, limits=limits, held=held)
    except StepFailed as failed:
        raise WorkplaceRefused(f"git {arguments[0]}: {failed.message}", code="git_failed") from failed
    if check and ended.code and os.strerror(errno.ENOSPC) in ended.complaint:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if check and ended.code:
        said = ended.complaint.strip().splitlines()
        text = f"git {arguments[0]} ended with {ended.code}: {said[-1][:300] if said else 'no message'}"
        raise WorkplaceRefused(text, code="git_failed")
    return ended


@contextlib.contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[int]:
    """Hold a lock on a file; the kernel releases it when every process with the descriptor has ended."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield descriptor
    finally:
        os.close(descriptor)


# Tasks of this process wait here in order, so only one thread at a time waits for other processes.
_QUEUES: Final[dict[tuple[int, Path], asyncio.Lock]] = {}


@contextlib.asynccontextmanager
async def locked_in_thread(path: Path) -> AsyncIterator[int]:
    """Hold a lock that another runner may have for a while, without blocking the event loop; its descriptor."""
    queue = _QUEUES.setdefault((id(asyncio.get_running_loop()), path), asyncio.Lock())
    async with queue:
        lock = locked(path, wait=True)
        entering = asyncio.ensure_future(asyncio.to_thread(lock.__enter__))
        try:
            descriptor = await asyncio.shield(entering)
        except asyncio.CancelledError:
            # The thread cannot be stopped: release the lock when it gets it.
            entering.add_done_callback(lambda done: done.exception() or lock.__exit__(None, None, None))
            raise
        try:
            yield descriptor
        finally:
            lock.__exit__(None, None, None)


def _folder(worktree: Path, within: str | None) -> Path:
    """Return the folder of a worktree that the brief names."""
    if not within:
        return worktree
    try:
        folder = resolve_inside(worktree, within)
    except WireRefused as refused:
        raise WorkplaceRefused(f"worktree_path {within[:200]!r}: {refused.message}", code=refused.code) from refused
    if not folder.is_dir():
        raise WorkplaceRefused(f"worktree_path {within[:200]!r} is not a directory of the repository")
    return folder
