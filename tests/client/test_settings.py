"""Where a client finds its server and its key, and to whom it never sends a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redkey.client import RedKey
from redkey.client.settings import Settings, find_settings
from redkey.errors import ConfigRefused
from tests.client.conftest import Place

FILE_KEY, ENV_KEY, OWN_KEY = "rk_file_secret", "rk_env_secret", "rk_own_secret"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory as `redkey serve` leaves it."""
    return write(tmp_path, "http://127.0.0.1:8123")


def write(data: Path, url: str) -> Path:
    credentials = {"url": url, "uds": "/run/redkey.sock", "workspaceId": "wk_1", "apiKey": FILE_KEY}
    (data / "credentials.json").write_text(json.dumps(credentials))
    return data


def test_the_file_of_the_server_is_enough(data: Path) -> None:
    found = find_settings(None, None, data, {})
    assert (found.base_url, found.api_key) == ("http://127.0.0.1:8123", FILE_KEY)


def test_variables_win_over_the_file_and_arguments_over_variables(data: Path) -> None:
    environment = {"REDKEY_URL": "https://rk.example", "REDKEY_API_KEY": ENV_KEY, "REDKEY_DATA": str(data)}
    found = find_settings(None, None, None, environment)
    assert (found.base_url, found.api_key) == ("https://rk.example", ENV_KEY)
    found = find_settings("http://other.example:1/", OWN_KEY, None, environment)
    assert (found.base_url, found.api_key) == ("http://other.example:1", OWN_KEY)


def test_the_data_directory_can_be_named_by_a_variable(data: Path) -> None:
    assert find_settings(None, None, None, {"REDKEY_DATA": str(data)}).api_key == FILE_KEY


def test_the_default_data_directory_is_that_of_the_server(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data)
    (data / ".redkey").mkdir()
    write(data / ".redkey", "http://127.0.0.1:9")
    assert find_settings(None, None, None, {}).base_url == "http://127.0.0.1:9"


def test_the_key_of_one_server_is_not_sent_to_another(data: Path) -> None:
    with pytest.raises(ConfigRefused, match="no key for"):
        find_settings("https://elsewhere.example", None, data, {})
    assert find_settings("http://127.0.0.1:8123/", None, data, {}).api_key == FILE_KEY
    assert find_settings("unix:/run/redkey.sock", None, data, {}).api_key == FILE_KEY


def test_a_key_is_not_sent_wherever_a_file_in_the_working_directory_says(tmp_path: Path) -> None:
    write(tmp_path, "https://evil.example")
    with pytest.raises(ConfigRefused, match="REDKEY_URL"):
        find_settings(None, None, tmp_path, {"REDKEY_API_KEY": ENV_KEY})


def test_a_key_alone_means_the_server_on_this_machine(tmp_path: Path) -> None:
    assert find_settings(None, OWN_KEY, tmp_path, {}).base_url == "http://127.0.0.1:8700"


def test_nothing_at_all_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused, match="redkey serve"):
        find_settings(None, None, tmp_path, {})


def test_a_damaged_file_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text("{")
    with pytest.raises(ConfigRefused, match="redkey serve"):
        find_settings(None, None, tmp_path, {})


@pytest.mark.parametrize(
    "url", ["ftp://host", "host:8700", "http://", "http://user:pass@host", "http://h:99999999", "unix:", "http://h?x=1"]
)
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ConfigRefused):
        find_settings(url, OWN_KEY, None, {})


@pytest.mark.parametrize("key", ["rk_a\nHost: evil", "rk a", "rk_ä"])
def test_what_cannot_be_a_key_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigRefused) as refused:
        find_settings("http://host", key, None, {})
    assert key not in str(refused.value)


def test_unix_sockets_are_paths() -> None:
    assert find_settings("unix:/run/a.sock", OWN_KEY, None, {}).uds == "/run/a.sock"
    assert find_settings("unix:///run/a.sock", OWN_KEY, None, {}).uds == "/run/a.sock"


@pytest.mark.parametrize(
    ("url", "local"),
    [("http://127.0.0.1:1", True), ("http://[::1]:1", True), ("http://localhost", True), ("http://10.0.0.1", False)],
)
def test_what_is_on_this_machine_is_known(url: str, local: bool) -> None:
    assert Settings(url, None, OWN_KEY).is_local is local


def test_a_proxy_of_the_environment_is_not_asked_for_the_own_machine(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with RedKey(place.url, place.key, max_retries=0) as rk:
        assert rk.server.health().status == "ok"
