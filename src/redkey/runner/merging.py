"""From a worktree to the repository: the runner's checks, one commit for each task, and a queue in which they land.

Work lands one after the other. It is rebased onto the branch as it is then, checked again when that changed anything,
and pushed only as a fast-forward: every commit that lands has passed its checks on the tree it lands on. What does not
rebase, or fails its checks after that, is a `Conflict`: the agent tries anew from the branch as it is now, with the
conflict among what it is told. The commit names its task, so that a task whose runner was killed after the push is
found to be merged and not done again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from redkey.errors import ConfigRefused, Finding, StepFailed, WorkplaceRefused
from redkey.runner.executors.command import environment
from redkey.runner.process import Limits, run
from redkey.runner.sandbox import Sandbox
from redkey.runner.workplace import Place, git, locked_in_thread

_TRAILER: Final = "RedKey-Task"
_PUSHES: Final = 10
_SHOWN_CHARACTERS: Final = 3000
_CHECK_SECONDS: Final = 1800.0
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_ASKED = re.compile(r"check:\s*([a-z][a-z0-9_-]*)\.?", re.IGNORECASE)
# The target may be checked out at the other end; its files follow when nobody has changed them.
_RECEIVE: Final = "--receive-pack=git -c receive.denyCurrentBranch=updateInstead receive-pack"


class Conflict(Exception):
    """The work, a commit, does not fit to what has landed meanwhile; `base` is where to begin anew."""

    def __init__(self, reason: str, commit: str, base: str) -> None:
        super().__init__(reason)
        self.reason, self.commit, self.base = reason, commit, base


class Check(msgspec.Struct, frozen=True):
    """A command of the operator that work must pass."""

    name: str
    command: str


def read_checks(texts: Sequence[str]) -> tuple[Check, ...]:
    """The checks in `NAME=COMMAND` or `COMMAND`; ConfigRefused when two have one name."""
    checks = []
    for number, text in enumerate(texts, 1):
        name, equals, command = text.partition("=")
        named = bool(equals) and _NAME.fullmatch(name) is not None
        checks.append(Check(name, command.strip()) if named else Check(f"check-{number}", text.strip()))
    names = [check.name for check in checks]
    if len(set(names)) != len(names) or not all(check.command for check in checks):
        raise ConfigRefused("each check has a name of its own and a command: --check tests='make test'")
    return tuple(checks)


class Merging:
    """How work in worktrees is checked, pushed and merged."""

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

    def missing(self, criteria: Sequence[str]) -> str | None:
        """The first check that acceptance criteria ask for (`check: NAME`) and that this runner does not have."""
        known = {check.name for check in self._checks}
        asked = [found[1].lower() for text in criteria if (found := _ASKED.fullmatch(text.strip()))]
        return next((name for name in asked if name not in known), None)

    async def check(self, place: Place) -> list[Finding]:
        """What the checks say of a worktree or directory; nothing when all of them pass.

        They are of the whole repository, also where a brief wants only one folder to be worked in.
        """
        found = []
        for check in self._checks:
            # A check runs what the agent wrote, such as tests.
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
        """Commit what the agent left uncommitted; the branch and the commit that it is at now."""
        within = place.top
        if (await git("status", "--porcelain", within=within)).output.strip():
            await git("add", "--all", ":/", within=within)
            await git("commit", "--quiet", "--no-verify", "-m", _message(title, task_id), within=within)
        head = (await git("rev-parse", "HEAD", within=within)).output.decode().strip()
        branch = (await git("symbolic-ref", "--short", "--quiet", "HEAD", within=within, check=False)).output
        return branch.decode().strip() or place.branch, head

    async def merged(self, place: Place, task_id: str, since: str) -> str | None:
        """The commit by which this task has landed already, when its runner was killed before it could say so."""
        # Clocks differ: a day more costs nothing.
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

    def turn(self, place: Place) -> AbstractAsyncContextManager[None]:
        """Hold the merge queue of a branch: no other runner with this work directory lands there meanwhile."""
        name = hashlib.sha256(f"{place.url}\0{place.target}".encode()).hexdigest()[:16]
        return locked_in_thread(self._root / "repositories" / f"{name}.queue")

    async def land(self, place: Place, commit: str, title: str, task_id: str) -> str:
        """Merge a commit into the target branch, as one commit; Conflict when it does not fit any more.

        The caller holds the merge queue (`turn`).
        """
        if place.clone is None:
            raise WorkplaceRefused("only work in a worktree can be merged")
        squashed = await self._squash(place, commit, title, task_id)
        for _ in range(_PUSHES):
            landed = await self._rebase(place, squashed, await self.tip(place))
            sent = await git(
                "push", "--quiet", _RECEIVE, place.url, f"{landed}:refs/heads/{place.target}",
                within=place.top, check=False,
            )  # fmt: skip
            if not sent.code:
                await self._forget(place)
                return landed
            if "non-fast-forward" not in sent.complaint and "fetch first" not in sent.complaint:
                said = sent.complaint.strip()[-300:]
                text = f"{place.target} of {place.url[:200]!r} does not take the work: {said}"
                raise WorkplaceRefused(text, code="push_refused")
        raise WorkplaceRefused(f"{place.target} moved {_PUSHES} times while the work was to land", code="push_refused")

    async def publish(self, place: Place, branch: str, commit: str) -> str:
        """Push a branch to the repository when the operator wants that; where it is now, or nothing."""
        if not self._push or place.clone is None:
            return ""
        ref, url = f"refs/heads/{branch}", place.url
        if place.own_clone:
            # The branch is there already: it goes to where the clone comes from.
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
        """The worktree at another base, on a branch of its own."""
        branch = f"{place.branch.removesuffix(f'-{number - 1}')}-{number}"
        await git("checkout", "--quiet", "--force", "-B", branch, base, within=place.top)
        await git("clean", "--quiet", "-ffdx", "-e", ".redkey", ":/", within=place.top)
        place.directory.mkdir(parents=True, exist_ok=True)
        return msgspec.structs.replace(place, base=base, branch=branch)

    async def patch(self, place: Place, commit: str | None = None) -> bytes:
        """Everything in which a commit differs from the base; without one, what is there, committed or not."""
        if commit is not None:
            return (await git("diff", "--binary", place.base, commit, within=place.top)).output
        await git("add", "--all", "--intent-to-add", ":/", within=place.top, check=False)
        return (await git("diff", "--binary", place.base, within=place.top, check=False)).output

    async def _squash(self, place: Place, commit: str, title: str, task_id: str) -> str:
        message = _message(title, task_id)
        made = await git("commit-tree", f"{commit}^{{tree}}", "-p", place.base, "-m", message, within=place.top)
        return made.output.decode().strip()

    async def tip(self, place: Place) -> str:
        """The last commit of the target branch."""
        # Into no branch of the clone: tasks that begin meanwhile fetch too, and git refuses the second of two that
        # change one branch at the same time. FETCH_HEAD is the worktree's own.
        await git("fetch", "--quiet", "--no-tags", place.url, f"refs/heads/{place.target}", within=place.top)
        return (await git("rev-parse", "FETCH_HEAD", within=place.top)).output.decode().strip()

    async def _rebase(self, place: Place, squashed: str, tip: str) -> str:
        """The commit on the tip, checked there; the tree at the base was checked before."""
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
        """Delete the branches of work that has landed: the commit is in the target."""
        await git("checkout", "--quiet", "--detach", within=place.top, check=False)
        names = await git(
            "for-each-ref", "--format=%(refname:short)", f"refs/heads/{_stem(place.branch)}*", within=place.top
        )
        for name in names.output.decode().split():
            await git("branch", "--quiet", "-D", name, within=place.top, check=False)


def _stem(branch: str) -> str:
    """The branch of a claim's first try: those of later tries have a number behind it."""
    return re.sub(r"-\d{1,2}$", "", branch)


def _message(title: str, task_id: str) -> str:
    line = " ".join(title.split())[:72] or task_id
    return f"{line}\n\n{_TRAILER}: {task_id}\n"
