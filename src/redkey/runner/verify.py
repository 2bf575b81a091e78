"""Mechanical verification: check the parts of an output contract that need no judgement, before anything is announced.

Every finding is a sentence that the agent gets with its next try. `evaluate` judges whether the work is good.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from redkey.errors import Finding, JsonRefused, OutputRefused
from redkey.runner.artifacts import Written, read_inside
from redkey.runner.contracts import Contracts
from redkey.runner.escalation import fields
from redkey.runner.files import describe
from redkey.runner.workplace import Place, git
from redkey.wire.decode import decode
from redkey.wire.legacy import OutputContract
from redkey.wire.step import SIZE_LIMIT, StepOutput

_NO_NAME = re.compile(r"[^a-z0-9._-]+")
_NAME_CHARACTERS: Final = 32
# Longer text files are not shown to an evaluator.
_READ_BYTES: Final = 4 * 1024 * 1024
# Fields of a pull request that are read from notes.
_PR_FIELDS: Final = ("branch", "commit", "url")
_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")


class Named(msgspec.Struct, frozen=True):
    """A written file and its name as an artifact."""

    name: str
    file: Written


class Work(msgspec.Struct, frozen=True):
    """The work to verify: the agent's output, its files and their directory."""

    place: Place
    output: StepOutput
    named: tuple[Named, ...]


def work_with_notes(work: Work, more: Sequence[str]) -> Work:
    """Add notes of the runner; they replace the agent's notes of the same name."""
    names = {note.partition(":")[0] for note in more}
    kept = [note for note in work.output.notes or () if note.partition(":")[0] not in names]
    return msgspec.structs.replace(work, output=msgspec.structs.replace(work.output, notes=(*kept, *more)))


def readable(work: Work) -> dict[str, str]:
    """Return the artifacts for an evaluator: text, or a description of other files."""
    found = {}
    for one in work.named:
        try:
            found[one.file.path] = read_inside(work.place.directory, one.file.path, _READ_BYTES).decode()
        except (UnicodeDecodeError, OutputRefused):
            found[one.file.path] = f"({one.file.media_type}, {one.file.bytes:,} bytes)"
    return found


def name_all(written: Sequence[Written], outputs: Sequence[str], files: Sequence[Written] = ()) -> tuple[Named, ...]:
    """Name each file after the output of the same name; a single file after the only output; others by themselves.

    `written` are declared in the envelope, `files` are other files of the agent.
    """
    every = [*written, *files]
    stems = {name for file in every for name in (PurePosixPath(file.path).name, PurePosixPath(file.path).stem)}
    alone = written if written else files
    taken: set[str] = set()
    named = []
    if len(alone) == 1 and len(outputs) == 1 and outputs[0] not in stems:
        named.append(Named(outputs[0], alone[0]))
        taken.add(outputs[0])
        every.remove(alone[0])
    for file in every:
        path = PurePosixPath(file.path)
        name = next((one for one in outputs if one in (path.name, path.stem) and one not in taken), "")
        name = name or _free(_NO_NAME.sub("-", path.name.lower()).strip(".-_") or "file", taken | set(outputs))
        taken.add(name)
        named.append(Named(name, file))
    return tuple(named)


def _free(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is taken."""
    name = name[-_NAME_CHARACTERS:].lstrip(".-_") or "file"
    number = 1
    found = name
    while found in taken:
        number += 1
        found = f"{name[: _NAME_CHARACTERS - 5]}-{number}"
    return found


async def mechanical(
    work: Work, contract: OutputContract, contracts: Contracts, outputs: Sequence[str] = ()
) -> list[Finding]:
    """Return everything in which an output breaks its contract; an empty list if it meets it."""
    found = await asyncio.to_thread(lambda: [*_present(work, outputs), *_stored(work)])
    if contract.output_ref_required and contract.type != "pr" and not work.named:
        found.append(Finding("output_missing", "/artifacts", "a stored output is required, and there is no artifact"))
    if found:
        return found
    if contract.type == "pr":
        document, problems = await _pull_request(work)
    else:
        document, problems = await asyncio.to_thread(_document, work, contract, outputs)
    if problems or contract.schema_ref is None:
        return problems
    asked = contracts.get(contract.schema_ref)
    if asked is None:
        return [Finding("contract_unknown", "/schema_ref", f"there is no output contract {contract.schema_ref!r}")]
    return asked.checker().findings(document)


def _present(work: Work, outputs: Iterable[str]) -> Iterator[Finding]:
    names = {one.name for one in work.named}
    for name in outputs:
        if name not in names:
            text = f"there is no artifact for the output {name!r}; call its file {name} with any ending"
            yield Finding("output_missing", "/artifacts", text)


def _stored(work: Work) -> Iterator[Finding]:
    """Check that all written files still exist unchanged."""
    for one in work.named:
        try:
            there = describe(work.place.directory, one.file.path)
        except OutputRefused as refused:
            yield Finding(refused.code, "/artifacts", refused.message)
            continue
        if there.sha256 != one.file.sha256:
            yield Finding("artifact_changed", "/artifacts", f"{one.file.path!r} changed after it was written")


def _document(work: Work, contract: OutputContract, outputs: Sequence[str]) -> tuple[Any, list[Finding]]:
    """Return the value that a contract's schema checks, and findings that come before that."""
    if contract.type == "message" or (contract.type == "report" and not work.named):
        return _sized({}, work.output.summary, contract, "/summary")
    if not work.named:
        text = f"an output of type {contract.type} is an artifact, and there is none"
        return None, [Finding("output_missing", "/artifacts", text)]
    main = next((one for one in work.named if one.name in outputs), work.named[0]).file
    about = {"path": main.path, "media_type": main.media_type, "bytes": main.bytes}
    try:
        if contract.type == "file" and main.bytes > SIZE_LIMIT:
            return _counted(about, main.bytes, contract)
        data = read_inside(work.place.directory, main.path, SIZE_LIMIT)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            if contract.type == "file":
                return _counted(about, main.bytes, contract)
            raise
        if contract.type == "json":
            return decode(text.encode(), size_limit=SIZE_LIMIT), _sized({}, text, contract, "/artifacts/0")[1]
    except JsonRefused as refused:
        return None, [Finding(refused.code, "/artifacts/0/content", f"{main.path!r} is not JSON: {refused.message}")]
    except (UnicodeDecodeError, OutputRefused) as cause:
        return None, [Finding("artifact_unreadable", "/artifacts/0", str(cause))]
    if not text.strip():
        return about, [Finding("output_empty", "/artifacts/0/content", f"{main.path!r} holds nothing")]
    return _sized(about, text, contract, "/artifacts/0/content")


def _sized(
    about: dict[str, Any], text: str, contract: OutputContract, pointer: str
) -> tuple[dict[str, Any], list[Finding]]:
    return _counted(about, len(text.strip()), contract, pointer)


def _counted(
    about: dict[str, Any], count: int, contract: OutputContract, pointer: str = "/artifacts/0"
) -> tuple[dict[str, Any], list[Finding]]:
    """Check the length of an output; bytes of a binary file count as characters."""
    if count < contract.min_length:
        said = f"the output has at least {contract.min_length:,} characters; this has {count:,}"
        return about, [Finding("output_short", pointer, said)]
    return about | {"characters": count}, []


async def _pull_request(work: Work) -> tuple[dict[str, str], list[Finding]]:
    """Check the branch and the commit of a pull request: both exist and descend from the base."""
    said = {name: text for name, text in fields(work.output.notes or ()).items() if name in _PR_FIELDS}
    branch, commit = said.get("branch", ""), said.get("commit", "")
    if not work.place.base:
        return said, [Finding("pr_no_worktree", "", "a pull request needs a git worktree; this directory is not one")]
    if not _REF.fullmatch(branch) or not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", commit):
        text = "say in notes which: `branch: NAME` and `commit: FULL ID`"
        return said, [Finding("pr_unnamed", "/notes", text)]
    checks = (
        (("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"), "pr_no_branch", f"there is no branch {branch}"),
        (("cat-file", "-e", f"{commit}^{{commit}}"), "pr_no_commit", f"there is no commit {commit}"),
        (
            ("merge-base", "--is-ancestor", commit, f"refs/heads/{branch}"),
            "pr_off_branch",
            f"the commit {commit} is not on the branch {branch}",
        ),
        (
            ("merge-base", "--is-ancestor", work.place.base, commit),
            "pr_off_base",
            f"the commit {commit} does not descend from the base {work.place.base}",
        ),
    )
    for arguments, code, text in checks:
        if (await git(*arguments, within=work.place.directory, check=False)).code:
            return said, [Finding(code, "/notes", text)]
    if commit == work.place.base:
        return said, [Finding("pr_nothing", "/notes", "the commit is the base itself, so nothing was committed")]
    return said, []
