"""Where a client finds its server and its key, and to whom it never sends a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redkey.client import RedKey
from redkey.client.settings import Settings, find_settings
from redkey.errors import ConfigRefused, Unauthorized, Unreachable
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
    "url", ["ftp://host", "host:port", "http://", "http://user:pass@host", "http://h:99999999", "unix:", "http://h?x=1"]
)
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ConfigRefused):
        find_settings(url, OWN_KEY, None, {})


@pytest.mark.parametrize("key", ["rk_a\nHost: evil", "rk a", "rk_ä"])
def test_what_cannot_be_a_key_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ConfigRefused) as refused:
        find_settings("http://host", key, None, {})
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("127.0.0.1:8710", "http://127.0.0.1:8710"),
        ("localhost", "http://localhost"),
        ("[::1]:8710", "http://[::1]:8710"),
        ("rk.example:8700", "https://rk.example:8700"),
    ],
)
def test_an_address_without_a_scheme_is_http_on_this_machine_and_https_elsewhere(url: str, meant: str) -> None:
    assert find_settings(url, OWN_KEY, None, {}).base_url == meant


def test_the_origin_names_where_address_and_key_come_from(data: Path) -> None:
    file = data / "credentials.json"
    assert find_settings(None, None, data, {}).origin == f"http://127.0.0.1:8123 (from {file}), key from {file}"
    environment = {"REDKEY_API_KEY": ENV_KEY}
    origin = find_settings(None, None, data, environment).origin
    assert origin.endswith(f"key from REDKEY_API_KEY, which overrides {file}")
    origin = find_settings("localhost:1", None, None, environment).origin
    assert origin == "http://localhost:1 (from the url given), key from REDKEY_API_KEY"
    assert ENV_KEY not in origin


def test_errors_of_connection_and_permission_name_the_server_and_the_key(place: Place) -> None:
    with RedKey("127.0.0.1:1", OWN_KEY, max_retries=0) as rk, pytest.raises(Unreachable) as unreachable:
        rk.server.health()
    assert "from http://127.0.0.1:1 (from the url given), key from the api_key given" in str(unreachable.value)
    wrong = "rk_abcdef_0123456789012345678901"
    with RedKey(place.url, wrong, max_retries=0) as rk, pytest.raises(Unauthorized) as unauthorized:
        rk.queues.list().page()
    assert f"Server: {place.url} (from the url given), key from the api_key given." in str(unauthorized.value)


def test_the_data_directory_of_a_project_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").mkdir()
    write(tmp_path / "kept", "http://127.0.0.1:9")
    (tmp_path / "redkey.toml").write_text('data = "kept"\n')
    assert find_settings(None, None, None, {}).base_url == "http://127.0.0.1:9"


def test_a_ledger_without_credentials_names_the_way_to_a_new_key(tmp_path: Path) -> None:
    (tmp_path / "redkey.db").touch()
    with pytest.raises(ConfigRefused, match=f"redkey key recover {tmp_path}"):
        find_settings(None, None, tmp_path, {})


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
