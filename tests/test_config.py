"""Configuration: what wins over what, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redkey.config import Config, load, load_explained
from redkey.errors import ConfigRefused


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "redkey.toml"
    path.write_text(text)
    return path


def test_without_anything_the_defaults_hold() -> None:
    assert load(None, {}, {}) == Config()


def test_arguments_win_over_variables_and_these_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, 'host = "file"\nport = 1\nlog_level = "error"\n')
    found = load(file, {"REDKEY_HOST": "variable", "REDKEY_PORT": "2"}, {"port": 3, "host": None})
    assert (found.log_level, found.host, found.port) == ("error", "variable", 3)


def test_tables_are_set_one_by_one_by_variables(tmp_path: Path) -> None:
    file = write(tmp_path, "[limits]\nbody_bytes = 5\nsubscribers = 6\n")
    found = load(file, {"REDKEY_LIMITS_SUBSCRIBERS": "7", "REDKEY_RATE_PER_SECOND": "2.5"}, {})
    assert (found.limits.body_bytes, found.limits.subscribers, found.rate.per_second) == (5, 7, 2.5)


def test_paths_may_begin_with_the_home_directory() -> None:
    assert load(None, {"REDKEY_DATA": "~/redkey"}, {}).data == Path.home() / "redkey"


def test_variables_of_other_parts_of_redkey_are_not_settings() -> None:
    others = {"REDKEY_BOOTSTRAP_KEY": "x", "REDKEY_API_KEY": "x", "REDKEY_URL": "x", "REDKEY_CONFIG": "x"}
    assert load(None, {**others, "HOME": "/"}, {}) == Config()


@pytest.mark.parametrize(
    ("text", "environment", "named"),
    [
        ("limit = 5", {}, "limit"),
        ("[limits]\nbody_byte = 5", {}, "body_byte"),
        ("port = 70000", {}, "port"),
        ("token_seconds = 5", {}, "token_seconds"),
        ("limits = 5", {}, "limits"),
        ("data = 5", {}, "data"),
        ("port = ", {}, "not TOML"),
        ('log_level = "loud"', {}, "log_level"),
        ('[block_routes]\nboredom = ["role_x"]', {}, "block_routes"),
        ('[block_routes]\nauth = ["x"]', {}, "block_routes"),
        ("", {"REDKEY_LIMITS_BODY_BYTES": "many"}, "body_bytes"),
        ("", {"REDKEY_LIMITS_BODY_BYTES": "0"}, "body_bytes"),
        ("", {"REDKEY_PROT": "1"}, "REDKEY_PROT"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, text: str, environment: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigRefused, match=named):
        load(write(tmp_path, text), environment, {})


@pytest.mark.parametrize(
    ("text", "environment", "said"),
    [
        ("prot = 5", {}, "{file}: prot is not a setting; did you mean port?"),
        ("[limits]\nbody_bites = 5", {}, "{file}: limits.body_bites is not a setting; did you mean limits.body_bytes?"),
        ("zzz = 5", {}, "{file}: zzz is not a setting; redkey config show lists all of them"),
        ("", {"REDKEY_PROT": "1"}, "REDKEY_PROT is not a setting; did you mean REDKEY_PORT?"),
        ("", {"REDKEY_LIMITS_BODY_BYTE": "1"}, "did you mean REDKEY_LIMITS_BODY_BYTES?"),
        ('port = "x"', {}, "{file}: port: Expected `int`, got `str`"),
        ("port = 1", {"REDKEY_PORT": "x"}, "REDKEY_PORT: port: Expected `int`, got `str`"),
        ("[limits]\nbody_bytes = 0", {}, "{file}: limits.body_bytes: Expected `int` >= 1"),
    ],
)
def test_a_refusal_names_the_source_and_what_was_probably_meant(
    tmp_path: Path, text: str, environment: dict[str, Any], said: str
) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConfigRefused) as refused:
        load(file, environment, {})
    assert said.format(file=file) in str(refused.value)


def test_where_each_setting_comes_from_is_known(tmp_path: Path) -> None:
    file = write(tmp_path, "port = 1\n[limits]\nsubscribers = 6\nbody_bytes = 5\n")
    found = load_explained(file, {"REDKEY_LIMITS_BODY_BYTES": "7"}, {"host": "::1", "uds": None})
    assert found.sources == {
        "port": str(file),
        "limits.subscribers": str(file),
        "limits.body_bytes": "REDKEY_LIMITS_BODY_BYTES",
        "host": "--host",
    }


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="cannot be read"):
        load(tmp_path / "missing.toml", {}, {})


def test_variables_of_a_runners_agent_are_no_settings_of_a_server() -> None:
    """An agent may well start a server of its own."""
    names = ("INPUT_FILE", "PROMPT_FILE", "OUTPUT_FILE", "OUTBOX_FILE", "USAGE_FILE", "AGENT_ID")
    assert load(None, {f"REDKEY_{name}": "/x" for name in names}, {}) == load(None, {}, {})
