"""`redkey plan` as people and scripts use it: exit codes, JSON, what is drawn, and wrong use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.wire import files
from tests.harness.runs import plan_of, step

FOLDER = files.root() / "fixtures/plan/v1.0"
PODCAST = str(FOLDER / "podcast-production.valid.json")
CYCLE = str(FOLDER / "plan.invalid-dependency-cycle.json")


def redkey(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments], input=text)


def saved(tmp_path: Path, plan: Any) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    return str(path)


def test_a_valid_plan_exits_with_0_and_an_invalid_one_with_1() -> None:
    assert redkey("validate", PODCAST).exit_code == 0
    found = redkey("validate", PODCAST, CYCLE)
    assert found.exit_code == 1
    assert "collect_changes -> edit_notes -> draft_notes -> collect_changes" in found.output
    assert "1 valid, 1 invalid" in found.output


def test_warnings_do_not_make_a_plan_invalid(tmp_path: Path) -> None:
    found = redkey("validate", saved(tmp_path, plan_of(step("a", role="agent"))))
    assert found.exit_code == 0
    assert "role_name_vague" in found.output
    assert "no_output" in found.output


def test_json_is_the_body_that_the_api_gives() -> None:
    lines = [json.loads(line) for line in redkey("validate", "--json", PODCAST, CYCLE).output.splitlines()]
    assert [line["valid"] for line in lines] == [True, False]
    assert lines[0].keys() == {"file", "valid", "errors", "warnings"}
    assert lines[1]["errors"][0].keys() == {"code", "path", "message"}


def test_a_plan_is_read_from_standard_input() -> None:
    assert redkey("validate", "-", text=Path(PODCAST).read_text()).exit_code == 0


@pytest.mark.parametrize("text", ["", "{", '{"a": 1, "a": 2}', "[NaN]"])
def test_what_is_not_json_is_a_finding(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    assert redkey("validate", str(path)).exit_code == 1
    (line,) = redkey("validate", "--json", str(path)).output.splitlines()
    assert json.loads(line)["errors"][0]["code"].startswith("json_")


def test_a_plan_of_more_than_16_mib_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b'{"name": "' + b"x" * (16 * 1024 * 1024) + b'"}')
    found = redkey("validate", "--json", str(path))
    assert found.exit_code == 1
    assert json.loads(found.output)["errors"][0]["code"] == "json_too_large"


def test_show_draws_levels_the_critical_path_and_the_parallelism(tmp_path: Path) -> None:
    plan = plan_of(step("a"), step("b"), step("c", "a", "b", approvalGate=True), attempts=2)
    found = redkey("show", saved(tmp_path, plan))
    assert found.exit_code == 0
    lines = found.output.splitlines()
    assert "   1 ─┬─ ● a  writer" in lines
    assert "      └─ ○ b  writer" in lines
    assert "   2 ─── ● c  writer  ◇ gate  ← a, b" in lines
    assert "critical path  a → c  (2 of 3 tasks)" in lines
    assert "1.5 tasks a level on 2 levels, at most 2 on one; the plan lets 5 run at once" in found.output


def test_show_as_json(tmp_path: Path) -> None:
    found = json.loads(redkey("show", "--json", saved(tmp_path, plan_of(step("a"), step("b", "a")))).output)
    assert found["levels"] == [["a"], ["b"]]
    assert found["criticalPath"] == ["a", "b"]


def test_a_long_chain_and_a_wide_level_are_drawn_in_a_page(tmp_path: Path) -> None:
    chain = [step(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(3000)]
    wide = [step(f"w{n}") for n in range(300)]
    found = redkey("show", saved(tmp_path, plan_of(*chain, *wide)))
    assert found.exit_code == 0
    assert len(found.output.splitlines()) < 80
    assert "2,960 more levels" in found.output
    assert "and 289 more" in found.output


def test_an_invalid_plan_is_not_drawn_and_not_simulated() -> None:
    for verb in ("show", "simulate"):
        found = redkey(verb, CYCLE)
        assert found.exit_code == 1
        assert "[dependency_cycle]" in found.output


def test_simulate_tells_makespan_utilisation_and_bottleneck() -> None:
    arguments = "--agents", "producer=1,researcher=3", "--seconds", "guest_intake=60", "--seconds", "guest_research=600"
    found = redkey("simulate", PODCAST, *arguments)
    assert found.exit_code == 0
    assert "finishes after 13m 00s" in found.output
    assert "guest_intake → guest_research → draft_script → review_script" in found.output
    report = json.loads(redkey("simulate", PODCAST, *arguments, "--json").output)
    assert report["makespanSeconds"] == report["criticalPathSeconds"] == 780
    assert report["roles"]["role_researcher"] == {
        "agents": 3,
        "tasks": 1,
        "busySeconds": 600.0,
        "utilisation": 0.2564,
        "waitedSeconds": 0.0,
        "longestWaitSeconds": 0.0,
        "mostWaiting": 0,
    }


def test_a_plan_that_cannot_finish_exits_with_1() -> None:
    found = redkey("simulate", PODCAST, "--agents", "writer=0")
    assert found.exit_code == 1
    assert "left undone    2 tasks: draft_script, review_script" in found.output


@pytest.mark.parametrize(
    "wrong",
    [
        ("--agents", "painter=1"),
        ("--agents", "writer"),
        ("--agents", "writer=-1"),
        ("--agents", "writer=1.5"),
        ("--agents", "writer=nan"),
        ("--seconds", "nothing=5"),
        ("--seconds", "guest_intake=soon"),
        ("--each", "-1"),
    ],
)
def test_wrong_use_exits_with_2(wrong: tuple[str, str]) -> None:
    assert redkey("simulate", PODCAST, *wrong).exit_code == 2


def test_a_plan_cannot_steer_the_terminal(tmp_path: Path) -> None:
    plan = plan_of(step("a")) | {"name": "x\x1b[31mred"}
    assert "\x1b[31m" not in redkey("show", saved(tmp_path, plan)).output
