"""`redkey init` and `redkey config show`: a project of its own, and settings that explain themselves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.config import Config, load
from tests.harness.server import begin


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("REDKEY_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_a_project_is_prepared_once_and_stays_as_it_is(project: Path) -> None:
    assert call("init").output == "created redkey.toml and .redkey\n"
    assert load(project / "redkey.toml", {}, {}) == Config()
    assert (project / ".redkey").stat().st_mode & 0o777 == 0o700
    assert (project / ".redkey" / ".gitignore").read_text().endswith("*\n")
    (project / "redkey.toml").write_text("port = 8710\n")
    assert call("init").output == "redkey.toml and .redkey are ready\n"
    assert (project / "redkey.toml").read_text() == "port = 8710\n"
    made = json.loads(call("init", "other", "--json").output)
    assert made["created"] == ["other/redkey.toml", "other/.redkey"]


def test_a_project_that_cannot_be_prepared_says_why(project: Path) -> None:
    (project / ".redkey").write_text("a file")
    result = call("init")
    assert result.exit_code == 1
    assert "[directory_refused]" in result.output
    (project / "redkey.toml").write_text("prot = 1\n")
    assert "did you mean port?" in call("init").output


def test_settings_are_shown_with_their_sources(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "redkey.toml").write_text("port = 8710\n[limits]\nsubscribers = 6\n")
    monkeypatch.setenv("REDKEY_HOST", "::1")
    lines = [line.split() for line in call("config", "show").output.splitlines()]
    assert ["host", "::1", "REDKEY_HOST"] in lines
    assert ["port", "8710", "redkey.toml"] in lines
    assert ["limits.subscribers", "6", "redkey.toml"] in lines
    assert ["data", ".redkey", "default"] in lines
    assert json.loads(call("config", "show", "port", "--json").output) == {
        "setting": "port", "value": 8710, "source": "redkey.toml",
    }  # fmt: skip
    assert {line.split(".")[0] for line in call("config", "show", "limits").output.splitlines()[1:]} == {"limits"}


@pytest.mark.parametrize(("name", "said"), [("limts", "did you mean limits?"), ("prt", "did you mean port?")])
def test_a_setting_that_does_not_exist_is_answered_with_the_nearest(project: Path, name: str, said: str) -> None:
    result = call("config", "show", name)
    assert result.exit_code == 2
    assert said in result.output


def test_a_server_tells_who_it_is_in_a_few_lines(tmp_path: Path) -> None:
    first = begin(tmp_path)
    first.stop()
    told = first.logs().split("\n{")[0].splitlines()
    assert told[0] == f"RedKey serves at {first.url}"
    assert told[1].split() == ["data", str(first.data), "(workspace", f"{first.workspace_id})"]
    assert told[2].split(maxsplit=1) == ["key", f"{first.data}/credentials.json (operator, admin)"]
    wanted = 'redkey task create --role researcher --title "Research Piers Gorman"'
    assert told[3].split(maxsplit=1) == ["studio", f"redkey studio --data {first.data}"]
    assert told[4].split(maxsplit=1) == ["next", f"{wanted} --data {first.data}"]
    assert first.key not in first.logs()
    (first.data / "credentials.json").unlink()
    # The harness waits for credentials, which this start cannot have.
    with pytest.raises(FileNotFoundError):
        begin(tmp_path)
