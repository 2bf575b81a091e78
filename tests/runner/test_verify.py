"""Mechanical verification: every kind of output, every rule of its contract, with real files and a real repository."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import ConfigRefused
from redkey.runner.artifacts import Written, write_all
from redkey.runner.contracts import Contracts
from redkey.runner.verify import Work, mechanical, name_all
from redkey.runner.workplace import Place
from redkey.wire.legacy import OutputContract
from redkey.wire.names import SLUG
from redkey.wire.step import StepArtifact, StepOutput
from tests.runner.repository import git, make_repository

CONTRACTS = Contracts()


def codes(
    directory: Path,
    contract: dict[str, Any],
    *,
    files: dict[str, str] | None = None,
    summary: str = "Done.",
    notes: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
    base: str = "",
    contracts: Contracts = CONTRACTS,
) -> list[str]:
    """What is found wrong with work of these files."""
    artifacts = [StepArtifact(path, "create", content) for path, content in (files or {}).items()]
    named = name_all(write_all(directory, artifacts), outputs)
    work = Work(Place(directory, base), StepOutput(True, summary, tuple(artifacts), "proceed", notes), named)
    asked = OutputContract(**{"output_ref_required": False, "min_length": 0, **contract})
    return [one.code for one in asyncio.run(mechanical(work, asked, contracts, outputs))]


@pytest.mark.parametrize(
    ("contract", "more", "expected"),
    [
        ({"type": "message"}, {}, []),
        ({"type": "message", "min_length": 6}, {}, ["output_short"]),
        ({"type": "message", "output_ref_required": True}, {}, ["output_missing"]),
        ({"type": "file"}, {}, ["output_missing"]),
        ({"type": "file"}, {"files": {"a.txt": "x"}}, []),
        ({"type": "file"}, {"files": {"a.txt": " \n"}}, ["output_empty"]),
        ({"type": "file", "min_length": 2}, {"files": {"a.txt": "x   "}}, ["output_short"]),
        ({"type": "file", "schema_ref": "output_ref_file"}, {"files": {"a.txt": "x"}}, []),
        ({"type": "report"}, {"summary": "All is well."}, []),
        ({"type": "report", "min_length": 50}, {"summary": "All is well."}, ["output_short"]),
        ({"type": "report", "schema_ref": "research_report"}, {"files": {"a.md": "x" * 400}}, []),
        ({"type": "report", "schema_ref": "research_report"}, {"files": {"a.md": "x"}}, ["schema_minimum"]),
        ({"type": "report", "schema_ref": "research_report"}, {"files": {"a.png": "x" * 400}}, ["schema_enum"]),
        ({"type": "json"}, {"files": {"a.json": "{"}}, ["json_syntax"]),
        ({"type": "json"}, {"files": {"a.json": '{"a": 1, "a": 2}'}}, ["json_duplicate_key"]),
        ({"type": "json"}, {"files": {"a.json": "[1]"}}, []),
        ({"type": "json", "schema_ref": "test_report"}, {"files": {"a.json": '{"passed": 3, "failed": 0}'}}, []),
        (
            {"type": "json", "schema_ref": "test_report"},
            {"files": {"a.json": '{"passed": 3, "failed": 1}'}},
            ["schema_required"],
        ),
        ({"type": "json", "schema_ref": "nothing"}, {"files": {"a.json": "1"}}, ["contract_unknown"]),
        ({"type": "file"}, {"files": {"a.txt": "x"}, "outputs": ("b", "c")}, ["output_missing", "output_missing"]),
        ({"type": "pr"}, {}, ["pr_no_worktree"]),
    ],
)
def test_each_rule_of_a_contract(contract: Any, more: Any, expected: list[str], tmp_path: Path) -> None:
    assert codes(tmp_path, contract, **more) == expected


def test_a_file_that_changed_or_went_after_it_was_written_is_found(tmp_path: Path) -> None:
    written = write_all(tmp_path, [StepArtifact(name, "create", "x") for name in ("a", "b")])
    (tmp_path / "a").write_text("y")
    (tmp_path / "b").unlink()
    work = Work(Place(tmp_path), StepOutput(True, "s", (), "proceed"), name_all(written, ()))
    asked = OutputContract("file", False, 0)
    found = asyncio.run(mechanical(work, asked, CONTRACTS))
    assert [one.code for one in found] == ["artifact_changed", "artifact_missing"]


def test_a_pull_request_is_a_commit_on_a_branch_grown_from_the_base(tmp_path: Path) -> None:
    tree = make_repository(tmp_path / "tree")
    base = git(tree, "rev-parse", "HEAD")
    git(tree, "checkout", "-q", "-b", "feature/x")
    (tree / "new").write_text("x")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "Work")
    commit = git(tree, "rev-parse", "HEAD")
    git(tree, "checkout", "-q", "--orphan", "elsewhere")
    git(tree, "commit", "-q", "--allow-empty", "-m", "Other")
    stray = git(tree, "rev-parse", "HEAD")

    def found(branch: str, told: str, ref: str | None = "code_commit") -> list[str]:
        notes = (f"branch: {branch}", f"commit: {told}")
        return codes(tree, {"type": "pr", "schema_ref": ref, "output_ref_required": True}, notes=notes, base=base)

    assert found("feature/x", commit) == []
    assert found("feature/y", commit) == ["pr_no_branch"]
    assert found("feature/x", "0" * 40) == ["pr_no_commit"]
    assert found("main", commit) == ["pr_off_branch"]
    assert found("elsewhere", stray) == ["pr_off_base"]
    assert found("feature/x", base) == ["pr_nothing"]
    assert found("feature/x", commit[:8]) == ["pr_unnamed"]
    assert found("--upload-pack=x", commit) == ["pr_unnamed"]
    git(tree, "branch", "-f", "main", commit)
    assert found("main", commit) == ["schema_not"]
    assert found("main", commit, None) == []


@given(
    paths=st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=300), min_size=1, max_size=60), max_size=6),
    outputs=st.lists(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,31}", fullmatch=True), max_size=3, unique=True),
)
def test_every_artifact_has_a_name_of_its_own_that_the_server_takes(paths: list[str], outputs: list[str]) -> None:
    named = name_all([Written(path, "", 0, "") for path in paths], outputs)
    names = [one.name for one in named]
    assert len(set(names)) == len(names) == len(paths)
    assert all(SLUG.fullmatch(name) for name in names)


def test_files_take_the_names_of_outputs_where_they_bear_them() -> None:
    files = [Written(path, "", 0, "") for path in ("out/brief.md", "notes.txt", "deep/plan")]
    assert [one.name for one in name_all(files, ("plan", "brief"))] == ["brief", "notes.txt", "plan"]
    assert [one.name for one in name_all(files[:1], ("anything",))] == ["anything"]


# --- contracts of one's own ---


def _contract(**more: Any) -> dict[str, Any]:
    return {"slug": "ours", "title": "Ours", "description": "x", "types": ["json"], "schema": {"type": "array"}, **more}


def test_contracts_of_ones_own_go_before_those_that_ship(tmp_path: Path) -> None:
    (tmp_path / "ours.json").write_text(json.dumps(_contract()))
    own = Contracts([tmp_path])
    assert codes(tmp_path, {"type": "json", "schema_ref": "ours"}, files={"a.json": "{}"}, contracts=own) == [
        "schema_type"
    ]
    assert own.problem("ours", "file") is not None
    assert own.get("code_commit") is not None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        json.dumps(_contract(slug="other")),
        json.dumps(_contract(types=["x"])),
        json.dumps(_contract(schema={"type": 1})),
    ],
)
def test_a_contract_that_is_none_is_refused_at_the_start(text: str, tmp_path: Path) -> None:
    (tmp_path / "ours.json").write_text(text)
    with pytest.raises(ConfigRefused, match=r"ours\.json"):
        Contracts([tmp_path])
