"""Artifacts in a working directory: whole or not at all, and never anywhere else."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from redkey.errors import OutputRefused
from redkey.runner.artifacts import put_file, read_inside, write_all
from redkey.wire.step import StepArtifact


def _create(path: str, content: str = "x") -> StepArtifact:
    return StepArtifact(path, "create", content)


def _update(path: str, content: str = "y") -> StepArtifact:
    return StepArtifact(path, "update", content)


def _code(root: Path, *artifacts: StepArtifact, own: tuple[str, ...] = ()) -> str:
    with pytest.raises(OutputRefused) as refused:
        write_all(root, artifacts, own)
    return refused.value.code


def test_files_are_created_and_updated_with_their_hash(tmp_path: Path) -> None:
    (made,) = write_all(tmp_path, [_create("specs/a/spec.md", "é")])
    assert (made.path, made.bytes, made.media_type) == ("specs/a/spec.md", 2, "text/markdown")
    assert made.sha256 == hashlib.sha256((tmp_path / "specs/a/spec.md").read_bytes()).hexdigest()
    (tmp_path / "specs/a/spec.md").chmod(0o750)
    write_all(tmp_path, [_update("specs/a/spec.md", "new")])
    assert (tmp_path / "specs/a/spec.md").read_text() == "new"
    assert (tmp_path / "specs/a/spec.md").stat().st_mode & 0o777 == 0o750
    assert [path.name for path in (tmp_path / "specs/a").iterdir()] == ["spec.md"]


def test_create_and_update_mean_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")
    assert _code(tmp_path, _create("there")) == "artifact_exists"
    assert _code(tmp_path, _update("missing")) == "artifact_missing"
    assert (tmp_path / "there").read_text() == "old"
    write_all(tmp_path, [_create("there", "again")], own=["there"])
    assert (tmp_path / "there").read_text() == "again"


def test_one_bad_artifact_keeps_all_from_being_written(tmp_path: Path) -> None:
    assert _code(tmp_path, _create("good"), _create("../bad")) == "path_parent"
    assert not any((tmp_path).iterdir())


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../x", "path_parent"),
        ("a/../../x", "path_parent"),
        ("/etc/x", "path_absolute"),
        (".git/hooks/pre-commit", "path_git"),
        ("a\\..\\x", "path_backslash"),
        ("C:x", "path_drive"),
        ("out/x", "path_symlink"),
        ("loop/x", "path_symlink"),
        ("gitlink/config", "path_git"),
        ("file/x", "artifact_place"),
        ("folder", "artifact_place"),
        ("pipe", "artifact_place"),
    ],
)
def test_no_path_leads_out_or_into_what_is_no_file(path: str, code: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "folder", root / ".git", outside):
        folder.mkdir(parents=True)
    (root / "out").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    (root / "gitlink").symlink_to(".git")
    (root / "file").write_text("")
    os.mkfifo(root / "pipe")
    assert _code(root, _create(path)) == code
    assert not any((outside).iterdir())


def test_a_link_as_the_last_step_is_followed_only_inside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "real").write_text("old")
    (root / "inside").symlink_to("real")
    (tmp_path / "secret").write_text("secret")
    (root / "outside").symlink_to(tmp_path / "secret")
    write_all(root, [_update("inside", "new")])
    assert (root / "real").read_text() == "new"
    assert _code(root, _update("outside", "stolen")) == "path_symlink"
    with pytest.raises(OutputRefused):
        read_inside(root, "outside", 100)
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_directory_swapped_for_a_link_while_we_write_leads_nowhere(tmp_path: Path) -> None:
    """Another process turns a directory into a link outwards and back, as fast as it can."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "swap").mkdir(parents=True)
    outside.mkdir()
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            # The writer makes directories that are missing, so any of these may come too late.
            with contextlib.suppress(OSError):
                (root / "swap").rename(root / f"aside{secrets.token_hex(4)}")
            with contextlib.suppress(OSError):
                (root / "swap").symlink_to(outside)
            with contextlib.suppress(OSError):
                (root / "swap").unlink()

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for number in range(60):
            try:
                write_all(root, [_create(f"swap/{number}")])
            except OutputRefused:
                continue
    finally:
        done.set()
        swapping.join()
    assert not any((outside).iterdir())


def test_a_kill_in_the_middle_leaves_whole_files_only(tmp_path: Path) -> None:
    code = textwrap.dedent(f"""
        import itertools
        from pathlib import Path
        from redkey.runner.artifacts import write_all
        from redkey.wire.step import StepArtifact
        print("ready", flush=True)
        for number in itertools.count():
            write_all(Path({str(tmp_path)!r}), [StepArtifact(f"{{number % 7}}.txt", "create", f"{{number}}" * 200_000)],
                      [f"{{number % 7}}.txt"])
    """)
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        threading.Event().wait(0.05)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        for path in tmp_path.glob("*.txt"):
            text = path.read_text()
            number = text[: len(text) // 200_000]
            assert text == number * 200_000


def test_reading_stops_at_the_limit_and_at_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("x" * 11)
    os.mkfifo(tmp_path / "pipe")
    for path, code in (("large", "artifact_too_large"), ("pipe", "artifact_place"), ("none", "artifact_missing")):
        with pytest.raises(OutputRefused) as refused:
            read_inside(tmp_path, path, 10)
        assert refused.value.code == code


def test_files_of_the_runner_are_written_through_no_link_of_a_repository(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    put_file(root, ".redkey/inputs/a.md", [b"one", b"two"])
    assert (root / ".redkey/inputs/a.md").read_bytes() == b"onetwo"
    put_file(root, ".redkey/inputs/a.md", [b"again"])
    assert (root / ".redkey/inputs/a.md").read_bytes() == b"again"
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / ".redkey").symlink_to(outside)
    with pytest.raises(OutputRefused):
        put_file(hostile, ".redkey/inputs/a.md", [b"x"])
    assert not any(outside.iterdir())


def test_a_link_that_is_put_in_place_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attacker acts at the worst moment: the paths have been judged, the first directory is about to be opened."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "swap").mkdir(parents=True)
    outside.mkdir()
    mkdir = os.mkdir

    def swap_first(*arguments: Any, **named: Any) -> None:
        (root / "swap").rmdir()
        (root / "swap").symlink_to(outside)
        mkdir(*arguments, **named)

    monkeypatch.setattr(os, "mkdir", swap_first)
    assert _code(root, _create("swap/x")) == "artifact_place"
    assert not any(outside.iterdir())
