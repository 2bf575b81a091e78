"""Artifacts stay inside the repository: by the text of their paths, and on the real file system."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import WireRefused
from redkey.wire.step_paths import PATH_RULES, normal, path_findings, resolve_inside


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "path_empty"),
        (".", "path_empty"),
        ("./.", "path_empty"),
        ("a\x00b", "path_control"),
        ("a\nb", "path_control"),
        ("a\x1b[31mb", "path_control"),
        ("a\x85b", "path_control"),
        ("a\\b", "path_backslash"),
        ("..\\a", "path_backslash"),
        ("\\\\server\\share", "path_backslash"),
        ("/etc/passwd", "path_absolute"),
        ("//host/share", "path_absolute"),
        ("C:/a", "path_drive"),
        ("c:a", "path_drive"),
        ("a/C:/b", "path_drive"),
        ("file:///etc/passwd", "path_drive"),
        ("https://example.com/a", "path_drive"),
        ("..", "path_parent"),
        ("../a", "path_parent"),
        ("a/../../b", "path_parent"),
        ("a/..", "path_parent"),
        ("a/.. /b", "path_parent"),
        ("a/.../b", "path_parent"),
        (".git/config", "path_git"),
        ("a/.git/hooks/x", "path_git"),
        (".GIT/config", "path_git"),
        (".git./config", "path_git"),
        ("git~1/config", "path_git"),
        ("a/", "path_directory"),
        ("x" * 256, "path_too_long"),
        ("a/" + "ü" * 128, "path_too_long"),
    ],
)
def test_a_path_that_leads_out_is_refused(path: str, code: str, tmp_path: Path) -> None:
    assert code in [finding.code for finding in path_findings(path, "/p")]
    with pytest.raises(WireRefused) as refused:
        resolve_inside(tmp_path, path)
    assert code in [finding.code for finding in refused.value.findings()]


@pytest.mark.parametrize(
    "path",
    [
        "a.md",
        "a/b/c.md",
        "./a.md",
        "a//b.md",
        ".github/workflows/ci.yml",
        ".gitignore",
        "..a/b..c",
        "a..b",
        "näme/文件.md",
        "a b.md",
        "~/a",
        "x" * 255,
        "12:30.md",
    ],
)
def test_a_path_that_stays_inside_is_taken(path: str, tmp_path: Path) -> None:
    assert path_findings(path) == []
    assert resolve_inside(tmp_path, path) == tmp_path.resolve() / normal(path)


def test_a_directory_is_no_artifact_but_may_be_an_input() -> None:
    assert [finding.code for finding in path_findings("specs/a/")] == ["path_directory"]
    assert path_findings("specs/a/", directory=True) == []


def test_every_rule_has_been_tried() -> None:
    tried = {"path_symlink"}
    for path in ("", "\n", "\\", "/", "c:", "..", ".git", "a/", "x" * 300):
        tried |= {finding.code for finding in path_findings(path)}
    assert tried == set(PATH_RULES)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "specs").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return root


def _refused(root: Path, path: str) -> str:
    with pytest.raises(WireRefused) as refused:
        resolve_inside(root, path)
    return refused.value.code


def test_a_link_to_a_file_outside_is_refused(repository: Path) -> None:
    (repository / "specs" / "a.md").symlink_to(repository.parent / "outside" / "secret")
    assert _refused(repository, "specs/a.md") == "path_symlink"


def test_a_relative_link_that_leads_out_is_refused(repository: Path) -> None:
    (repository / "specs" / "a.md").symlink_to("../../outside/secret")
    assert _refused(repository, "specs/a.md") == "path_symlink"


def test_a_parent_directory_that_is_a_link_outside_is_refused(repository: Path) -> None:
    (repository / "docs").symlink_to(repository.parent / "outside", target_is_directory=True)
    assert _refused(repository, "docs/new.md") == "path_symlink"
    assert _refused(repository, "docs/deep/new.md") == "path_symlink"


def test_a_chain_of_links_that_leads_out_is_refused(repository: Path) -> None:
    (repository / "one").symlink_to("two")
    (repository / "two").symlink_to(repository.parent / "outside")
    assert _refused(repository, "one/new.md") == "path_symlink"


def test_a_dangling_link_that_points_out_is_refused(repository: Path) -> None:
    (repository / "a.md").symlink_to(repository.parent / "outside" / "not-there-yet")
    assert _refused(repository, "a.md") == "path_symlink"


def test_a_link_into_a_sibling_whose_name_begins_alike_is_refused(repository: Path) -> None:
    (repository.parent / "repository-two").mkdir()
    (repository / "docs").symlink_to("../repository-two")
    assert _refused(repository, "docs/a.md") == "path_symlink"


def test_links_in_a_circle_are_refused(repository: Path) -> None:
    (repository / "one").symlink_to("two")
    (repository / "two").symlink_to("one")
    (repository / "self").symlink_to("self")
    assert _refused(repository, "one") == "path_symlink"
    assert _refused(repository, "one/a.md") == "path_symlink"
    assert _refused(repository, "self") == "path_symlink"


def test_a_link_to_the_root_itself_names_no_file(repository: Path) -> None:
    (repository / "here").symlink_to(".")
    assert _refused(repository, "here") == "path_symlink"


def test_a_link_into_the_records_of_git_is_refused(repository: Path) -> None:
    (repository / ".git" / "hooks").mkdir(parents=True)
    (repository / "hooks").symlink_to(".git/hooks")
    assert _refused(repository, "hooks/pre-commit") == "path_git"


def test_links_that_stay_inside_are_followed(repository: Path) -> None:
    (repository / "current").symlink_to("specs")
    (repository / "latest.md").symlink_to("specs/not-there-yet.md")
    assert resolve_inside(repository, "current/a.md") == repository.resolve() / "specs" / "a.md"
    assert resolve_inside(repository, "latest.md") == repository.resolve() / "specs" / "not-there-yet.md"


def test_a_root_that_is_a_link_is_a_root(repository: Path) -> None:
    (repository.parent / "link").symlink_to(repository)
    assert resolve_inside(repository.parent / "link", "specs/a.md") == repository.resolve() / "specs" / "a.md"


def test_a_root_that_is_not_there_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        resolve_inside(tmp_path / "nowhere", "a.md")


@given(st.text(st.characters(codec=None), max_size=60) | st.from_regex(r"[./a-c\\~: ]{0,20}", fullmatch=True))
def test_any_text_is_refused_or_lies_inside(path: str) -> None:
    root = Path.cwd()
    try:
        place = resolve_inside(root, path)
    except WireRefused:
        return
    assert place.is_relative_to(root.resolve())
    assert place != root.resolve()
