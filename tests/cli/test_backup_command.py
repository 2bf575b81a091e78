"""`redkey backup` and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.services.fsck.check import Fsck
from tests.harness.tampering import BASE, sql
from tests.harness.workshop import lived_in


def backup(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["backup", *map(str, arguments)])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return lived_in(tmp_path / "data")


def test_a_backup_is_made_checked_and_described(directory: Path, tmp_path: Path) -> None:
    result = backup(directory, tmp_path / "backup")
    assert result.exit_code == 0, result.output
    assert "747 records of 1 topics, 3 files" in result.output
    assert "no secrets" in result.output
    assert CliRunner().invoke(main, ["fsck", str(tmp_path / "backup")]).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "backup").iterdir()) == [
        "backup.json",
        "checkpoints",
        "content",
        "redkey.db",
    ]


def test_keys_are_copied_only_when_asked_for(directory: Path, tmp_path: Path) -> None:
    result = backup(directory, tmp_path / "backup", "--with-keys", "--json")
    told = json.loads(result.output)
    assert told["keys"] is True
    assert told["topics"][0]["records"] == 747
    assert (tmp_path / "backup" / "keys" / "signer-0001.key").exists()
    assert "secrets: keep it" in backup(directory, tmp_path / "again", "--with-keys").output


def test_a_damaged_directory_is_not_backed_up_unless_one_insists(directory: Path, tmp_path: Path) -> None:
    sql(directory, "UPDATE record SET payer = '1.0.3' WHERE position = ?", BASE + 9)
    result = backup(directory, tmp_path / "backup")
    assert result.exit_code == 1
    assert "source_damaged" in result.output
    assert "redkey fsck" in result.output
    assert not (tmp_path / "backup").exists()
    assert backup(directory, tmp_path / "backup", "--quick").exit_code == 0


def test_nothing_is_overwritten(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "mine").write_text("mine")
    result = backup(directory, tmp_path / "backup")
    assert result.exit_code == 1
    assert "target_exists" in result.output
    assert [path.name for path in (tmp_path / "backup").iterdir()] == ["mine"]


def test_what_is_no_data_directory_cannot_be_backed_up(tmp_path: Path) -> None:
    result = backup(tmp_path, tmp_path / "backup")
    assert result.exit_code == 1
    assert "no_store" in result.output
    assert backup(tmp_path / "nowhere", tmp_path / "backup").exit_code == 2


def test_an_interrupt_leaves_nothing(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Fsck, "run", interrupted)
    result = backup(directory, tmp_path / "backup")
    assert result.exit_code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
