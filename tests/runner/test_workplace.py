"""Working directories: one for each claim, a worktree where asked and allowed, none left behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from redkey.errors import WorkplaceRefused
from redkey.runner.merging import Merging
from redkey.runner.repositories import check_repositories
from redkey.runner.workplace import Workplace, may_clone
from tests.harness.acts import until
from tests.runner.processes import gone, pids
from tests.runner.repository import git, make_repository


def test_a_plain_place_is_empty_and_gone_afterwards(tmp_path: Path) -> None:
    async def scene() -> Path:
        async with Workplace(tmp_path).place("task_1-clm_1") as place:
            assert not any((place.directory).iterdir())
            (place.directory / "x").write_text("x")
            return place.directory

    assert not asyncio.run(scene()).exists()
    assert not any((tmp_path / "places").iterdir())


def test_a_worktree_stands_on_the_default_branch_and_its_commits_stay(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    head = git(origin, "rev-parse", "HEAD")

    async def scene() -> str:
        workplace = Workplace(tmp_path / "work", repositories=[str(tmp_path)])
        async with workplace.place("one", str(origin)) as place:
            assert (place.directory / "README.md").read_text() == "hello\n"
            assert (place.base, place.branch) == (head, "redkey/one")
            (place.directory / "new").write_text("x")
            git(place.directory, "add", ".")
            git(place.directory, "commit", "-q", "-m", "Work")
            made = git(place.directory, "rev-parse", "HEAD")
        # The same repository again, from the clone that is there.
        async with workplace.place("two", str(origin)) as place:
            assert place.base == head
        return made

    made = asyncio.run(scene())
    (clone,) = (tmp_path / "work" / "repositories").glob("*.git")
    assert git(clone, "rev-parse", "redkey/one") == made
    assert not any((tmp_path / "work" / "places").iterdir())


@pytest.mark.parametrize(
    "url", ["https://elsewhere.example/x.git", "--upload-pack=touch pwned", "ext::sh -c touch% pwned"]
)
def test_a_repository_that_is_not_allowed_is_not_called(url: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with Workplace(tmp_path / "work", repositories=[str(tmp_path)]).place("one", url):
            raise AssertionError("unreachable")

    with pytest.raises(WorkplaceRefused) as refused:
        asyncio.run(scene())
    assert refused.value.code == "repository_not_allowed"
    assert not any((tmp_path / "work" / "places").iterdir())


@pytest.mark.parametrize(
    ("prefix", "url", "admitted"),
    [
        ("https://host.example/acme", "https://host.example/acme", True),
        ("https://host.example/acme", "https://host.example/acme/app.git", True),
        ("https://host.example/acme/", "https://host.example/acme/app.git", True),
        ("https://host.example/acme", "https://host.example/acme-evil/app.git", False),
        ("https://host.example/acme", "https://host.example/acme.git", False),
        ("https://host.example", "https://host.example.evil/app.git", False),
        ("https://host.example", "https://host.example@evil.example/app.git", False),
        ("https://host.example:", "https://host.example:x@evil.example/app.git", False),
        ("https://host.example/acme", "https://host.example/acme/../evil/app.git", False),
        ("https://host.example/acme", "https://host.example/acme/%2e%2E/evil/app.git", False),
        ("https://host.example/acme", "https://host.example/acme/..%2fevil/app.git", False),
        ("git@host.example:acme", "git@host.example:acme/app.git", True),
        ("git@host.example:", "git@host.example:acme/app.git", True),
        ("git@host.example:acme", "git@host.example:acme-evil/app.git", False),
        ("/srv/git", "/srv/git/app", True),
        ("/srv/git", "/srv/git-evil/app", False),
        ("/srv/git", "/srv/git/../other/app", False),
        ("", "-x", False),
        ("-x", "-x/app", False),
    ],
)
def test_a_prefix_admits_whole_path_segments_only(prefix: str, url: str, admitted: bool) -> None:
    assert may_clone(url, [prefix]) is admitted


def test_a_transport_that_executes_is_refused_even_where_a_prefix_allows_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Workplace(tmp_path / "work", repositories=[""]).place("one", f"ext::touch% {tmp_path}/pwned"):
            raise AssertionError("unreachable")

    with pytest.raises(WorkplaceRefused) as refused:
        asyncio.run(scene())
    assert refused.value.code == "git_failed"
    assert not (tmp_path / "pwned").exists()


def test_a_repository_that_is_not_there_is_named_with_gits_words(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Workplace(tmp_path, repositories=[str(tmp_path)]).place("one", str(tmp_path / "none")):
            raise AssertionError("unreachable")

    with pytest.raises(WorkplaceRefused, match="ls-remote"):
        asyncio.run(scene())


def test_places_of_a_killed_runner_are_swept_and_those_in_use_are_not(tmp_path: Path) -> None:
    code = textwrap.dedent(f"""
        import asyncio
        from pathlib import Path
        from redkey.runner.workplace import Workplace
        async def scene():
            async with Workplace(Path({str(tmp_path)!r})).place("theirs"):
                print("ready", flush=True)
                await asyncio.sleep(600)
        asyncio.run(scene())
    """)
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert other.stdout is not None
    try:
        other.stdout.readline()
        assert Workplace(tmp_path).sweep() == 0
        assert (tmp_path / "places" / "theirs").is_dir()
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert Workplace(tmp_path).sweep() == 1
    assert not any((tmp_path / "places").iterdir())


def test_work_lands_while_another_task_fetches_the_branch(tmp_path: Path) -> None:
    """Tasks of several runners share a clone: one begins, and fetches, while the work of another lands."""
    origin = make_repository(tmp_path / "origin")

    async def scene() -> str:
        workplace = Workplace(tmp_path / "work", repositories=[str(tmp_path)])
        async with workplace.place("one", str(origin), target="main") as place:
            (place.directory / "mine").write_text("x")
            git(place.directory, "add", ".")
            git(place.directory, "commit", "-q", "-m", "Work")
            (origin / "theirs").write_text("x")
            git(origin, "add", ".")
            git(origin, "commit", "-q", "-m", "Other work")
            assert place.clone is not None
            (place.clone / "refs" / "remotes" / "origin" / "main.lock").touch()
            commit = git(place.directory, "rev-parse", "HEAD")
            merging = Merging(tmp_path / "work", merge_into="main")
            async with merging.turn(place):
                return await merging.land(place, commit, "Work", "task_1")

    landed = asyncio.run(scene())
    assert git(origin, "rev-parse", "main") == landed
    assert git(origin, "log", "--format=%s", "main").splitlines() == ["Work", "Other work", "Begin"]


def test_a_killed_runner_leaves_no_lock_of_git_behind(tmp_path: Path) -> None:
    """The runner is killed while git holds the lock of a repository: git removes it, and the next one can work."""
    repository, held = make_repository(tmp_path / "repository"), tmp_path / "pids"
    lock = repository / ".git" / "index.lock"
    git(repository, "config", "user.name", "Test")
    git(repository, "config", "user.email", "test@example.com")
    (repository / "README.md").write_text("changed\n")
    code = textwrap.dedent(f"""
        import asyncio
        from pathlib import Path
        from redkey.runner.workplace import git
        editor = "core.editor=sh -c 'echo $$ >> {held}; exec sleep 600'"
        asyncio.run(git("-c", editor, "commit", "-a", within=Path({str(repository)!r})))
    """)
    runner = subprocess.Popen([sys.executable, "-c", code])
    try:
        (editor,) = pids(held, 1)
        assert lock.exists()
    finally:
        runner.kill()
        runner.wait()
    assert gone(editor)
    until(lambda: not lock.exists())
    git(repository, "commit", "-q", "-a", "-m", "Change")


def test_a_root_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkplaceRefused):
        Workplace(tmp_path / "file")


def test_a_path_that_leads_to_no_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    repository = make_repository(tmp_path / "all" / "one")
    check_repositories(
        ["", "https://example.com/acme", "git@example.com:acme", str(repository), str(repository.parent)]
    )
    for wrong in (str(tmp_path / "nope"), "./nope", str(repository / ".git" / "refs"), str(tmp_path)):
        with pytest.raises(WorkplaceRefused) as refused:
            check_repositories([wrong])
        assert refused.value.code == "repository_missing"
