"""`redkey card lint` tells people and machines what is wrong with cards, and exits 0, 1 or 2."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from redkey.cli import main
from redkey.wire import files

FIXTURES = files.root() / "fixtures" / "cards"
REGISTRY = str(FIXTURES / "registry.json")


def _lint(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["card", "lint", *arguments], input=stdin)


def test_the_reference_card_is_valid() -> None:
    result = _lint(str(files.root() / "definitions/cards/quinn.json"), "--registry", REGISTRY)
    assert result.exit_code == 0
    assert result.output.endswith("quinn.json: valid Agent Card 1.0\n")


@pytest.mark.parametrize("name", files.load("fixtures/cards/expectations.json"))
def test_each_fixture_gets_its_code_and_pointer_and_the_right_exit(name: str) -> None:
    if name.startswith("registry"):
        return
    expected = files.load("fixtures/cards/expectations.json")[name]
    result = _lint(str(FIXTURES / name), "--registry", REGISTRY, "--json")
    told = json.loads(result.output)
    assert (expected["code"], expected["pointer"]) in {(f["code"], f["pointer"]) for f in told["findings"]}
    assert told["valid"] == all(finding["severity"] == "warning" for finding in told["findings"])
    assert result.exit_code == (0 if told["valid"] else 1)


def test_a_finding_is_a_line_with_file_pointer_code_and_sentence() -> None:
    path = str(FIXTURES / "card.lint-constraint-form.json")
    result = _lint(path)
    assert result.exit_code == 1
    assert result.output.startswith(f"{path}: /constraints/1: constraint_form: a constraint begins with “I never ”")


def test_a_warning_alone_leaves_a_card_valid() -> None:
    result = _lint(str(FIXTURES / "card.lint-department-unusual.json"), "--registry", REGISTRY)
    assert result.exit_code == 0
    assert "department_unusual" in result.output


def test_several_cards_are_counted() -> None:
    cards = (str(FIXTURES / "card.valid.json"), str(FIXTURES / "card.invalid-missing-scope.json"))
    result = _lint(*cards, "--registry", REGISTRY)
    assert result.exit_code == 1
    assert result.output.endswith("1 valid, 1 invalid\n")


def test_a_card_may_come_from_standard_input() -> None:
    result = _lint("-", "--registry", REGISTRY, stdin=(FIXTURES / "card.valid.json").read_bytes())
    assert (result.exit_code, result.output) == (0, "stdin: valid Agent Card 1.0\n")


def test_without_a_registry_routes_are_not_looked_up() -> None:
    value = json.loads((FIXTURES / "card.lint-route-unknown.json").read_bytes())
    known = json.dumps({**value, "output_types": ["code_commit"]}).encode()
    assert _lint("-", stdin=known).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Missing argument"),
        (("nowhere.json",), "does not exist"),
        ((".",), "is a directory"),
        ((str(FIXTURES / "card.valid.json"), "--registry", "nowhere.json"), "does not exist"),
        ((str(FIXTURES / "card.valid.json"), "--registry", str(FIXTURES / "card.valid.json")), "is missing"),
        ((str(FIXTURES / "card.valid.json"), "--nonsense"), "No such option"),
    ],
)
def test_wrong_use_exits_with_2_and_says_why(arguments: tuple[str, ...], told: str) -> None:
    result = _lint(*arguments)
    assert result.exit_code == 2
    assert told in result.output


def test_a_registry_that_is_not_json_is_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "registry.json").write_bytes(b"\xff")
    result = _lint(str(FIXTURES / "card.valid.json"), "--registry", str(tmp_path / "registry.json"))
    assert result.exit_code == 2
    assert "not UTF-8" in result.output


@given(st.binary(max_size=120) | st.text(max_size=60).map(str.encode))
def test_any_bytes_get_a_clear_answer(data: bytes) -> None:
    result = _lint("-", "--json", stdin=data)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    for line in result.output.splitlines():
        assert json.loads(line)["findings"]


def test_a_file_name_that_is_no_text_can_still_be_reported(tmp_path: Path) -> None:
    path = tmp_path.joinpath("card-\udcff.json")
    path.write_bytes(b"{}")
    command = [sys.executable, "-c", "from redkey.cli import main; main()", "card", "lint", "--json", bytes(path)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["valid"] is False


def _run(path: Path, work: Path) -> Any:
    arguments = ["run", "--queue", "q", "--exec", "true", "--card", str(path), "--url", "http://127.0.0.1:1"]
    return CliRunner().invoke(main, [*arguments, "--work", str(work)], env={"REDKEY_API_KEY": "rk"})


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"output_types": ["moon_rock"]}, "output_type_unknown"),
        ({"voice": {"description": "Terse.", "example": ["Hi.", "Bye."]}}, "voice_examples"),
        ({"scope": "I do this. I do that."}, "scope_sentences"),
    ],
)
def test_a_card_that_breaks_a_rule_is_refused_by_lint_and_run_alike(
    changed: dict[str, Any], code: str, tmp_path: Path
) -> None:
    card = json.loads((files.root() / "definitions/cards/quinn.json").read_bytes())
    path = tmp_path / "card.json"
    path.write_text(json.dumps({**card, **changed}))
    result, run = _lint(str(path)), _run(path, tmp_path / "work")
    assert (result.exit_code, code in result.output) == (1, True), result.output
    assert (run.exit_code, f"[{code}]" in run.stderr) == (1, True), run.stderr


def test_an_output_type_may_have_a_contract_of_ones_own(tmp_path: Path) -> None:
    card = json.loads((files.root() / "definitions/cards/quinn.json").read_bytes())
    path = tmp_path / "card.json"
    path.write_text(json.dumps({**card, "output_types": ["moon_rock"]}))
    contract = json.loads((files.root() / "definitions/contracts/output_ref_file.json").read_bytes())
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "moon_rock.json").write_text(json.dumps({**contract, "slug": "moon_rock"}))
    assert _lint(str(path), "--contracts", str(tmp_path / "contracts")).exit_code == 0
