"""Move work from a worktree to the repository: run checks, make one commit per task, land commits one by one.

In the merge queue, work is rebased onto the current branch, checked again if the branch has moved, and pushed only as a
fast-forward. So every commit on the branch has passed its checks on exactly its own tree. Work that does not rebase, or
fails its checks after that, raises `Conflict`: the agent starts again from the current branch, with the conflict in its
brief. The commit names its task, so a task whose runner was killed after the push is recognised as merged.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from redkey.errors import ConfigRefused, Finding, StepFailed, WorkplaceRefused
from redkey.runner.executors.command import environment
from redkey.runner.process import Limits, run
from redkey.runner.sandbox import Sandbox
from redkey.runner.workplace import PUSH_LIMITS, Place, git, locked_in_thread

_TRAILER: Final = "RedKey-Task"
_PUSHES: Final = 10
_SHOWN_CHARACTERS: Final = 3000
_CHECK_SECONDS: Final = 1800.0
# What git says when the branch has moved since it was fetched.
_MOVED: Final = ("non-fast-forward", "fetch first", "failed to update ref")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_ASKED = re.compile(r"check:\s*([a-z][a-z0-9_-]*)\.?", re.IGNORECASE)
# If the target is checked out at the other end, git updates its files too, unless the user has changed them.
_RECEIVE: Final = "--receive-pack=git -c receive.denyCurrentBranch=updateInstead receive-pack"


class Conflict(Exception):
    """The commit does not apply to the current branch; `base` is the commit to start again from."""

    def __init__(self, reason: str, commit: str, base: str) -> None:
        super().__init__(reason)
        self.reason, self.commit, self.base = reason, commit, base


class Check(msgspec.Struct, frozen=True):
    """A command of the operator that the work must pass."""

    name: str
    command: str


def read_checks(texts: Sequence[str]) -> tuple[Check, ...]:
    """Read checks of the form `NAME=COMMAND` or `COMMAND`; ConfigRefused if two have the same name."""
    checks = []
    for number, text in enumerate(texts, 1):
        name, equals, command = text.partition("=")
        named = bool(equals) and _NAME.fullmatch(name) is not None
        checks.append(Check(name, command.strip()) if named else Check(f"check-{number}", text.strip()))
    names = [check.name for check in checks]
    if len(set(names)) != len(names) or not all(check.command for check in checks):
        raise ConfigRefused("each check needs its own name and a command: --check tests='make test'")
    return tuple(checks)


class Merging:
    """Checks, pushes and merges work in worktrees."""

    def __init__(
        self,
        root: Path,
        *,
        checks: Sequence[Check] = (),
        merge_into: str | None = None,
        push: bool = False,
        pass_on: Sequence[str] = (),
        sandbox: Sandbox | None = None,
    ) -> None:
        self._root, self._checks, self.merge_into, self._push = root, tuple(checks), merge_into, push
        self._pass_on, self._sandbox = tuple(pass_on), sandbox
        # The lock descriptor of each merge queue that this runner holds, by the queue's file.
        self._held: dict[Path, int] = {}

    def missing(self, criteria: Sequence[str]) -> str | None:
        """Return the first check that the acceptance criteria require (`check: NAME`) and this runner lacks."""
        known = {check.name for check in self._checks}
        asked = [found[1].lower() for text in criteria if (found := _ASKED.fullmatch(text.strip()))]
        return next((name for name in asked if name not in known), None)

    async def check(self, place: Place) -> list[Finding]:
        """Run all checks; return a finding for each one that fails.

        They run at the top of the repository, even if the brief names a folder to work in.
        """
        found = []
        for check in self._checks:
            # A check runs code that the agent wrote, such as tests.
            command = ["/bin/sh", "-c", check.command]
            try:
                ended = await run(
                    self._sandbox.wrap(command, place.top, place.beside) if self._sandbox else command,
                    directory=place.top,
                    environment=environment(self._pass_on),
                    limits=Limits(seconds=_CHECK_SECONDS, output_bytes=64 * 1024 * 1024),
                )
            except StepFailed as failed:
                found.append(Finding("check_failed", "", f"{check.name}: {failed.message}"))
                continue
            if ended.code:
                said = f"{ended.output.decode('utf-8', 'replace')}\n{ended.complaint}".strip()[-_SHOWN_CHARACTERS:]
                found.append(Finding("check_failed", "", f"{check.name} ended with exit code {ended.code}:\n{said}"))
        return found

    async def commit(self, place: Place, title: str, task_id: str) -> tuple[str, str]:
        """Commit uncommitted changes; return the branch and its last commit."""
        within = place.top
        if (await git("status", "--porcelain", within=within)).output.strip():
            await git("add", "--all", ":/", within=within)
            await git("commit", "--quiet", "--no-verify", "-m", _message(title, task_id), within=within)
        head = (await git("rev-parse", "HEAD", within=within)).output.decode().strip()
        branch = (await git("symbolic-ref", "--short", "--quiet", "HEAD", within=within, check=False)).output
        return branch.decode().strip() or place.branch, head

    async def merged(self, place: Place, task_id: str, since: str) -> str | None:
        """Return the commit of this task on the branch, if its runner was killed after the push."""
        # Clocks may differ, so look one day further back.
        begun = datetime.fromisoformat(since) - timedelta(days=1)
        asked = (
            "log",
            "-1",
            "--format=%H",
            f"--since={begun.isoformat()}",
            "--fixed-strings",
            f"--grep={_TRAILER}: {task_id}",
        )
        found = (await git(*asked, place.base, within=place.top)).output.decode().strip()
        return found or None

    @asynccontextmanager
    async def turn(self, place: Place) -> AsyncIterator[None]:
        """Hold the merge queue of a branch: no other runner with this work directory lands there meanwhile."""
        queue = self._queue(place)
        async with locked_in_thread(queue) as descriptor:
            self._held[queue] = descriptor
            try:
                yield
            finally:
                del self._held[queue]

    def _queue(self, place: Place) -> Path:
        name = hashlib.sha256(f"{place.url}\0{place.target}".encode()).hexdigest()[:16]
        return self._root / "repositories" / f"{name}.queue"

    async def land(self, place: Place, commit: str, title: str, task_id: str) -> str:
        """Merge work into the target branch as one commit; Conflict if it does not apply any more.

        The caller must hold the merge queue (`turn`).
        """
        if place.clone is None:
            raise WorkplaceRefused("only work in a worktree can be merged")
        squashed = await self._squash(place, commit, title, task_id)
        # A push outlives a runner that is killed. It keeps the merge queue until it has ended.
        held = (self._held[self._queue(place)],)
        for _ in range(_PUSHES):
            landed = await self._rebase(place, squashed, await self.tip(place))
            sent = await git(
                "push", "--quiet", _RECEIVE, place.url, f"{landed}:refs/heads/{place.target}",
                within=place.top, check=False, limits=PUSH_LIMITS, held=held,
            )  # fmt: skip
            if not sent.code:
                await self._forget(place)
                return landed
            await self._restore(place, landed)
            if not any(reason in sent.complaint for reason in _MOVED):
                said = sent.complaint.strip()[-300:]
                text = f"{place.target} of {place.url[:200]!r} does not take the work: {said}"
                raise WorkplaceRefused(text, code="push_refused")
        raise WorkplaceRefused(f"{place.target} moved {_PUSHES} times while the work was to land", code="push_refused")

    async def _restore(self, place: Place, refused: str) -> None:
        """Take the files of a refused commit out of a target that is checked out on this machine.

        Git writes the files first and moves the branch after that. If another push moved the branch in between, the
        files of the refused commit stay, and git refuses every later push because of them. Files that the user has
        changed are kept: git does not overwrite them.
        """
        within = Path(place.url)
        if not within.is_dir():
            return
        index = await git("write-tree", within=within, check=False)
        tree = await git("rev-parse", "--verify", "--quiet", f"{refused}^{{tree}}", within=within, check=False)
        if not index.code and index.output == tree.output:
            await git("read-tree", "-m", "-u", refused, "HEAD", within=within, check=False)

    async def publish(self, place: Place, branch: str, commit: str) -> str:
        """Push a branch if `--push` is set; return where it is now, or an empty text."""
        if not self._push or place.clone is None:
            return ""
        ref, url = f"refs/heads/{branch}", place.url
        if place.own_clone:
            # The clone has the branch already, so push it to the clone's origin.
            found = await git("remote", "get-url", "--push", "origin", within=place.top, check=False)
            url = found.output.decode().strip()
            if not url:
                return f"{place.url} {branch}"
        sent = await git("push", "--quiet", url, f"+{commit}:{ref}", within=place.top, check=False)
        if sent.code:
            said = sent.complaint.strip()[-300:]
            raise WorkplaceRefused(f"{url[:200]!r} does not take the branch {branch}: {said}", code="push_refused")
        return f"{url} {branch}"

    async def begin_anew(self, place: Place, base: str, number: int) -> Place:
        """Reset the worktree to another base, on a new branch."""
        branch = f"{place.branch.removesuffix(f'-{number - 1}')}-{number}"
        await git("checkout", "--quiet", "--force", "-B", branch, base, within=place.top)
        await git("clean", "--quiet", "-ffdx", "-e", ".redkey", ":/", within=place.top)
        place.directory.mkdir(parents=True, exist_ok=True)
        return msgspec.structs.replace(place, base=base, branch=branch)

    async def patch(self, place: Place, commit: str | None = None) -> bytes:
        """Return the patch from the base to a commit, or to the current files if no commit is given."""
        if commit is not None:
            return (await git("diff", "--binary", place.base, commit, within=place.top)).output
        await git("add", "--all", "--intent-to-add", ":/", within=place.top, check=False)
        return (await git("diff", "--binary", place.base, within=place.top, check=False)).output

    async def _squash(self, place: Place, commit: str, title: str, task_id: str) -> str:
        message = _message(title, task_id)
        made = await git("commit-tree", f"{commit}^{{tree}}", "-p", place.base, "-m", message, within=place.top)
        return made.output.decode().strip()

    async def tip(self, place: Place) -> str:
        """Fetch and return the last commit of the target branch."""
        # Do not fetch into a branch of the clone: other tasks fetch at the same time, and git refuses two
        # concurrent updates of one branch. FETCH_HEAD belongs to the worktree.
        await git("fetch", "--quiet", "--no-tags", place.url, f"refs/heads/{place.target}", within=place.top)
        return (await git("rev-parse", "FETCH_HEAD", within=place.top)).output.decode().strip()

    async def _rebase(self, place: Place, squashed: str, tip: str) -> str:
        """Rebase the commit onto the tip and run the checks; without a move of the branch there is nothing to do."""
        within = place.top
        if tip == place.base:
            return squashed
        await git("checkout", "--quiet", "--force", "--detach", tip, within=within)
        await git("clean", "--quiet", "-ffd", "-e", ".redkey", ":/", within=within)
        picked = await git(
            "cherry-pick", "--allow-empty", "--keep-redundant-commits", squashed, within=within, check=False
        )
        if picked.code:
            files = (await git("diff", "--name-only", "--diff-filter=U", within=within)).output.decode().split()
            difference = (await git("diff", within=within)).output.decode("utf-8", "replace")
            await git("cherry-pick", "--abort", within=within, check=False)
            shown = difference[:_SHOWN_CHARACTERS]
            raise Conflict(
                f"the branch has changed meanwhile; conflicts in {', '.join(files)[:500]}:\n{shown}", squashed, tip
            )
        landed = (await git("rev-parse", "HEAD", within=within)).output.decode().strip()
        if found := await self.check(place):
            raise Conflict(f"the branch has changed meanwhile, and together {found[0].message}", squashed, tip)
        return landed

    async def _forget(self, place: Place) -> None:
        """Delete the branches of work that has landed."""
        await git("checkout", "--quiet", "--detach", within=place.top, check=False)
        names = await git(
            "for-each-ref", "--format=%(refname:short)", f"refs/heads/{_stem(place.branch)}*", within=place.top
        )
        for name in names.output.decode().split():
            await git("branch", "--quiet", "-D", name, within=place.top, check=False)


def _stem(branch: str) -> str:
    """Return the branch name of a claim's first try; later tries append a number."""
    return re.sub(r"-\d{1,2}$", "", branch)


def _message(title: str, task_id: str) -> str:
    line = " ".join(title.split())[:72] or task_id
    return f"{line}\n\n{_TRAILER}: {task_id}\n"
