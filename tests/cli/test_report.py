"""Reports show what strangers wrote without letting it act on the terminal."""

from __future__ import annotations

import json

import pytest

from redkey.cli.report import Checked, report
from redkey.errors import Finding

HOSTILE = Finding("schema_type", "/\x1b[2J\r\nforged: valid", "the key \x07 is \u202ewrong")


def test_control_characters_are_escaped_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert not report([Checked("a.json", (HOSTILE,))], as_json=False)
    shown = capsys.readouterr().out
    assert shown == "a.json: /\\x1b[2J\\r\\nforged: valid: schema_type: the key \\x07 is \\u202ewrong\n"


def test_machines_get_the_very_text(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert not report([Checked("a.json", (HOSTILE,), "thing")], as_json=True)
    assert json.loads(capfdbinary.readouterr().out) == {
        "file": "a.json",
        "valid": False,
        "kind": "thing",
        "findings": [HOSTILE.as_json()],
    }


def test_warnings_leave_a_document_valid(capsys: pytest.CaptureFixture[str]) -> None:
    advice = Finding("goal_imperative", "/payload/goal", "say what is true", "warning")
    assert report([Checked("a.json", (advice,)), Checked("b.json", (), "thing")], as_json=False)
    assert capsys.readouterr().out.splitlines()[1:] == ["b.json: valid thing", "2 valid, 0 invalid"]
