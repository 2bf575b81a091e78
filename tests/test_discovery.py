"""Servers of one data directory: clients find one that lives, whichever was started or killed."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

from redkey.client.settings import find_settings
from redkey.discovery import Announcement, keep_out_of_repositories, living_servers
from tests.harness.server import serving


def named(data: Path) -> str:
    """The server that the credentials name."""
    return str(json.loads((data / "credentials.json").read_text())["url"])


def test_a_server_is_known_while_it_lives(tmp_path: Path) -> None:
    assert living_servers(tmp_path) == []
    first = Announcement(tmp_path, "http://127.0.0.1:1", None)
    second = Announcement(tmp_path, "http://127.0.0.1:2", "/run/x")
    assert [one.url for one in living_servers(tmp_path)] == ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    first.withdraw()
    assert [one.uds for one in living_servers(tmp_path)] == ["/run/x"]
    second.withdraw()
    assert living_servers(tmp_path) == []
    assert list((tmp_path / "servers").iterdir()) == []


def test_what_is_no_file_of_a_server_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "servers").mkdir()
    (tmp_path / "servers" / "dead.json").write_text('{"url":"http://127.0.0.1:1","uds":null,"pid":1,"startedAt":1}')
    (tmp_path / "servers" / "broken.json").write_text("{")
    assert living_servers(tmp_path) == []
    Announcement(tmp_path, "http://127.0.0.1:2", None).withdraw()
    assert list((tmp_path / "servers").iterdir()) == []


def test_a_second_server_that_stops_or_dies_breaks_no_client(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        with serving(tmp_path, name="second") as second:
            assert named(first.data) == first.url
            assert find_settings(second.url, None, first.data, {}).api_key == first.key
            second.stop()
        assert find_settings(None, None, first.data, {}).base_url == first.url
        with serving(tmp_path, name="second") as second:
            first.process.send_signal(signal.SIGKILL)
            first.process.wait(60)
            assert named(first.data) == first.url
            assert find_settings(None, None, first.data, {}).base_url == second.url


def test_a_server_that_stops_leaves_the_credentials_to_another(tmp_path: Path) -> None:
    with serving(tmp_path) as first, serving(tmp_path, name="second") as second:
        first.stop()
        assert named(first.data) == second.url


def test_a_data_directory_stays_out_of_repositories(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, timeout=60)
    with serving(tmp_path) as server:
        shown = subprocess.run(
            ["git", "-C", str(tmp_path), "status", "--short", "--untracked-files=all", str(server.data)],
            check=True, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert shown.stdout == ""
    own = tmp_path / "own"
    own.mkdir()
    (own / ".gitignore").write_text("mine\n")
    keep_out_of_repositories(own)
    assert (own / ".gitignore").read_text() == "mine\n"
