"""`redkey openapi` prints the document that a server shows, without one."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from redkey.api.openapi import document
from redkey.api.surface import routes
from redkey.app import operations_of
from redkey.cli import main


def test_it_prints_the_document_of_the_server_with_the_bus() -> None:
    result = CliRunner().invoke(main, ["openapi"])
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found == json.loads(document(operations_of(routes())))
    # It is the same wherever it is made.
    assert found["servers"] == [{"url": "/"}]
    assert {"/tasks/{taskId}/claim", "/api/sessions"} <= found["paths"].keys()


def test_it_writes_a_file(tmp_path: Path) -> None:
    target = tmp_path / "openapi.json"
    result = CliRunner().invoke(main, ["openapi", "--output", str(target)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert target.read_text() == CliRunner().invoke(main, ["openapi"]).stdout
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "openapi.json"
    result = CliRunner().invoke(main, ["openapi", "--output", str(target)])
    assert result.exit_code == 1
    assert str(target) in result.stderr
