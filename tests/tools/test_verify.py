"""`make verify` knows current files from stale, missing and left-over ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import fixtures, verify


def test_every_generated_file_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main() == 0
    assert "current" in capsys.readouterr().out


def test_what_is_stale_missing_or_left_over_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "ROOT", tmp_path)
    (tmp_path / "made").mkdir()
    for name in ("same", "changed", "left"):
        (tmp_path / "made" / name).write_bytes(b"old")
    made = {"made/same": b"old", "made/changed": b"new", "made/absent": b"new"}
    assert verify.stale("made", made) == [
        "made/absent: is missing",
        "made/left: no generator writes it",
        "made/changed: is not current",
    ]


def test_a_stale_file_fails_the_run_and_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify, "ROOT", tmp_path)
    monkeypatch.setattr(verify, "GENERATORS", [("things", "made", lambda: {"made/a": b"a"}, "make things")])
    assert verify.main() == 1
    assert capsys.readouterr().out == "things: 1 files, 1 wrong; write them with: make things\n  made/a: is missing\n"


def test_generating_is_deterministic_and_writes_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixtures, "ROOT", tmp_path)
    (tmp_path / fixtures.FOLDER).parent.mkdir(parents=True)
    fixtures.main()
    made = fixtures.generated()
    assert {name: (tmp_path / name).read_bytes() for name in made} == made
