"""`redkey step validate` tells inputs from outputs, reads older forms with warnings, and exits 0, 1 or 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from redkey.cli import main
from redkey.wire import files

FIXTURES = files.root() / "fixtures" / "agent-protocol"
MIGRATIONS = files.load("fixtures/agent-protocol/migrations/expectations.json")
# A file's migration knows no index artifact of a workflow.
CASES = [case for case, expected in MIGRATIONS.items() if expected.keys() == {"changes"}]


def _validate(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["step", "validate", *arguments], input=stdin)


@pytest.mark.parametrize("name", [n for n in files.names("fixtures/agent-protocol", ".json") if ".valid" in n])
def test_valid_envelopes_are_called_by_their_kind(name: str) -> None:
    result = _validate(str(FIXTURES / name))
    assert result.exit_code == 0
    assert result.output.endswith(f"{name}: valid step {name.split('.')[0]}\n")


@pytest.mark.parametrize("name", files.load("fixtures/agent-protocol/expectations.json"))
def test_each_invalid_fixture_gets_its_code_and_pointer(name: str) -> None:
    expected = files.load("fixtures/agent-protocol/expectations.json")[name]
    result = _validate(str(FIXTURES / name), "--json")
    told = json.loads(result.output)
    assert result.exit_code == 1
    assert (expected["code"], expected["pointer"]) in {(f["code"], f["pointer"]) for f in told["findings"]}


@pytest.mark.parametrize("case", files.load("fixtures/agent-protocol/migrations/expectations.json"))
def test_older_forms_are_valid_and_each_change_is_a_warning(case: str) -> None:
    result = _validate(str(FIXTURES / "migrations" / f"{case}.before.json"), "--json")
    told = json.loads(result.output)
    assert result.exit_code == 0
    assert told["kind"] == f"step {case.split('-')[0]}"
    assert {finding["severity"] for finding in told["findings"]} == {"warning"}


def test_the_kind_may_be_given() -> None:
    assert _validate(str(FIXTURES / "input.valid.json"), "--input").exit_code == 0
    assert _validate(str(FIXTURES / "input.valid.json"), "--output").exit_code == 1


def test_json_lines_on_standard_input_are_named_by_line() -> None:
    lines = [
        json.dumps(files.load(f"fixtures/agent-protocol/{name}")) for name in ("input.valid.json", "output.valid.json")
    ]
    result = _validate("-", stdin="\n".join([*lines, "{oops}"]).encode())
    assert result.exit_code == 1
    told = result.output.splitlines()
    assert told[:2] == ["stdin:1: valid step input", "stdin:2: valid step output"]
    assert told[2].startswith("stdin:3: /: json_syntax: ")
    assert told[3] == "2 valid, 1 invalid"


def test_an_output_of_several_megabytes_is_read() -> None:
    value = files.load("fixtures/agent-protocol/output.valid.json")
    value["artifacts"][0]["content"] = "x" * (3 * 1024 * 1024)
    assert _validate("-", stdin=json.dumps(value).encode()).exit_code == 0


def test_fifty_megabytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.write(b'{"success":"')
        file.truncate(50_000_000)
    result = _validate(str(path))
    assert result.exit_code == 1
    assert "json_too_large" in result.output


@pytest.mark.parametrize("arguments", [(), ("nowhere.json",), ("--nonsense",)])
def test_wrong_use_exits_with_2(arguments: tuple[str, ...]) -> None:
    assert _validate(*arguments).exit_code == 2


@given(st.binary(max_size=120) | st.text(max_size=60).map(str.encode))
def test_any_bytes_get_a_clear_answer(data: bytes) -> None:
    result = _validate("-", "--json", stdin=data)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    for line in result.output.splitlines():
        assert json.loads(line)["findings"]


@pytest.mark.parametrize("case", CASES)
def test_an_older_form_is_printed_in_todays(case: str) -> None:
    folder = FIXTURES / "migrations"
    result = CliRunner().invoke(main, ["step", "migrate", str(folder / f"{case}.before.json")])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads((folder / f"{case}.after.json").read_bytes())
    assert len(result.stderr.splitlines()) >= 1


def test_lines_are_migrated_line_by_line_and_what_is_no_envelope_is_told() -> None:
    line = json.dumps(files.load("fixtures/agent-protocol/output.valid.json"))
    result = CliRunner().invoke(main, ["step", "migrate", "-"], input=f"{line}\n{line}\n{{}}\n")
    assert result.exit_code == 1
    assert [json.loads(one) for one in result.stdout.splitlines()] == [json.loads(line)] * 2
    assert "stdin:3: /: step_kind_unknown" in result.stderr


@pytest.mark.parametrize("kind", ["input", "output"])
def test_the_examples_of_the_seed_are_there_and_valid(kind: str) -> None:
    path = Path(__file__).resolve().parents[2] / "examples" / f"{kind}.json"
    result = _validate(str(path), f"--{kind}")
    assert (result.exit_code, result.output) == (0, f"{path}: valid step {kind}\n")
    assert path.read_bytes() == (FIXTURES / f"{kind}.valid.json").read_bytes()
