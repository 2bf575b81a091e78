"""`redkey restore` and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.cli import restore as module
from redkey.client.settings import find_settings
from redkey.errors import ConfigRefused
from tests.harness.tampering import BASE, sql
from tests.harness.workshop import checked, lived_in


def redkey(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    assert redkey("backup", lived_in(tmp_path / "data"), tmp_path / "backup").exit_code == 0
    return tmp_path / "backup"


def test_a_restored_directory_is_checked_and_the_new_epoch_is_told(backup: Path, tmp_path: Path) -> None:
    result = redkey("restore", backup, tmp_path / "restored")
    assert result.exit_code == 0, result.output
    assert "747 records, and it goes on as redkey/" in result.output
    assert "/e2" in result.output
    assert "a new epoch has begun" in result.output
    assert "a new signing key: redkey/" in result.output
    assert checked(tmp_path / "restored").clean


def test_a_restored_directory_names_the_way_to_a_key_and_it_works(backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "restored"
    assert f"next: redkey key recover {target}" in redkey("restore", backup, target).output
    with pytest.raises(ConfigRefused, match=f"redkey key recover {target}"):
        find_settings(None, None, target, {})
    recovered = json.loads(redkey("key", "recover", target, "--json").output)
    assert find_settings(None, None, target, {}).api_key == recovered["apiKey"]


def test_json_names_topics_origins_and_keys(backup: Path, tmp_path: Path) -> None:
    told = json.loads(redkey("restore", backup, tmp_path / "restored", "--epoch", 7, "--json").output)
    (topic,) = told["topics"]
    assert (topic["topic"], topic["records"], topic["origin"][-3:]) == ("1.0.1001", 747, "/e7")
    assert len(told["keys"]) == 1


def test_nothing_is_overwritten(backup: Path, tmp_path: Path) -> None:
    result = redkey("restore", backup, tmp_path / "data")
    assert result.exit_code == 1
    assert "target_exists" in result.output
    assert checked(tmp_path / "data").clean


def test_an_epoch_that_has_begun_is_refused(backup: Path, tmp_path: Path) -> None:
    assert redkey("restore", backup, tmp_path / "one").exit_code == 0
    assert redkey("backup", tmp_path / "one", tmp_path / "later").exit_code == 0
    result = redkey("restore", tmp_path / "later", tmp_path / "two", "--epoch", 2)
    assert result.exit_code == 1
    assert "epoch_closed" in result.output
    assert not (tmp_path / "two").exists()


def test_a_backup_of_a_damaged_directory_is_not_restored(tmp_path: Path) -> None:
    directory = lived_in(tmp_path / "data")
    sql(directory, "UPDATE record SET payer = '1.0.3' WHERE position = ?", BASE + 9)
    assert redkey("backup", directory, tmp_path / "backup", "--quick").exit_code == 0
    result = redkey("restore", tmp_path / "backup", tmp_path / "restored")
    assert result.exit_code == 1
    assert "backup_damaged" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "data"]


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    result = redkey("restore", lived_in(tmp_path / "data"), tmp_path / "restored")
    assert result.exit_code == 1
    assert "no_backup" in result.output


def test_an_interrupt_leaves_nothing(backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "begin_epoch", interrupted)
    assert redkey("restore", backup, tmp_path / "restored").exit_code == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "data"]
