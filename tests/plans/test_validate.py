"""Plans are checked whole: every finding has a code, a place and something to do; all of them are told at once."""

from __future__ import annotations

import copy
import gc
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import Finding
from redkey.plans.graph import cycles
from redkey.plans.model import read_plan
from redkey.plans.shape import SCHEMA, TASKS_LIMIT
from redkey.plans.structure import to_structure, write_structure
from redkey.plans.validate import ALIKE_LIMIT, validate
from redkey.wire import files
from redkey.wire.schema import compile_schema
from tests.harness.runs import plan_of, step

FOLDER = "fixtures/plan/v1.0"
EXPECTED: dict[str, Any] = files.load(f"{FOLDER}/expectations.json")
VALID = [name for name in files.names(FOLDER, ".json") if ".valid" in name]


def _told(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(one.code, one.pointer) for one in findings]


@pytest.mark.parametrize("name", VALID)
def test_a_valid_plan_has_no_findings_and_a_structure(name: str) -> None:
    plan = files.load(f"{FOLDER}/{name}")
    assert (validate(plan).errors, validate(plan).warnings) == ((), ())
    structure = write_structure(to_structure(read_plan(plan)))
    assert compile_schema(f"{SCHEMA.rpartition('/')[0]}/structure.schema.json").findings(structure) == []


def test_the_podcast_plan_of_the_specification_is_valid_and_is_the_example() -> None:
    plan = files.load(f"{FOLDER}/podcast-production.valid.json")
    assert [task["id"] for task in plan["tasks"]] == ["guest_intake", "guest_research", "draft_script", "review_script"]
    example = files.root() / "examples/podcast/plan.json"
    if example.exists():
        assert example.read_bytes() == (files.root() / FOLDER / "podcast-production.valid.json").read_bytes()


def test_every_invalid_plan_is_expected() -> None:
    assert sorted(EXPECTED) == [name for name in files.names(FOLDER, ".json") if ".invalid-" in name]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_invalid_plan_is_found_wrong_where_it_is(name: str) -> None:
    found = validate(files.load(f"{FOLDER}/{name}"))
    assert not found.valid
    assert _told(found.errors) == [(one["code"], one["path"]) for one in EXPECTED[name]["errors"]]
    for one in found.errors:
        assert one.message
        assert one.message.isprintable()


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_plan() -> None:
    plan = plan_of(*(step(f"t{number}") for number in range(12)))
    del plan["name"]
    plan["tasks"][2]["role"] = "nobody"
    plan["tasks"][10]["dependsOn"] = ["t99"]
    plan["tasks"][11]["completionCriteria"] = []
    plan["policies"] = {}
    assert _told(validate(plan).errors) == [
        ("name_missing", "/name"),
        ("max_parallel_missing", "/policies/maxParallelTasks"),
        ("retry_missing", "/policies/retry"),
        ("role_unknown", "/tasks/2/role"),
        ("dependency_unknown", "/tasks/10/dependsOn/0"),
        ("completion_criteria_missing", "/tasks/11/completionCriteria"),
    ]


def test_a_cycle_is_shown_as_the_cycle() -> None:
    found = validate(plan_of(step("a", "c"), step("b", "a"), step("c", "b"), step("d", "c"))).errors
    assert _told(found) == [("dependency_cycle", "/tasks/1/dependsOn/0")]
    assert "a -> c -> b -> a" in found[0].message


def test_each_knot_of_cycles_is_told_once_by_a_shortest_cycle() -> None:
    first = (step("a", "b"), step("b", "c", "a"), step("c", "a"))
    second = (step("x", "y"), step("y", "x"))
    found = validate(plan_of(*first, *second, step("z", "a", "x"))).errors
    assert [one.message.partition(": ")[2].partition(".")[0] for one in found] == ["a -> b -> a", "x -> y -> x"]


def test_a_long_cycle_is_told_in_one_line() -> None:
    (found,) = validate(plan_of(*(step(f"t{n}", f"t{(n + 1) % 5000}") for n in range(5000)))).errors
    assert len(found.message) < 300
    assert "t0 -> t1" in found.message
    assert "more" in found.message


def test_names_that_were_nearly_right_are_told() -> None:
    plan = plan_of(step("intake", role="producer"), step("draft", "intke", role="producr"))
    plan["roles"] = {"producer": {}}
    messages = {one.code: one.message for one in validate(plan).errors}
    assert "did you mean intake" in messages["dependency_unknown"]
    assert "did you mean producer" in messages["role_unknown"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("guest_intak\u0435", "U+0435 (CYRILLIC SMALL LETTER IE)"),
        ("cafe\u0301", "U+0301 (COMBINING ACUTE ACCENT)"),
        ("\uff41", "U+FF41 (FULLWIDTH LATIN SMALL LETTER A)"),
        ("a\u200bb", "U+200B (ZERO WIDTH SPACE)"),
        ("Guest", "lower case"),
        ("a b", "a-z, 0-9"),
        ("", "a-z, 0-9"),
        (7, "a-z, 0-9"),
    ],
)
def test_an_id_that_could_be_taken_for_another_is_refused_by_name(key: Any, said: str) -> None:
    plan = plan_of(step("a"), step("b"))
    plan["tasks"][1]["id"] = key
    (found,) = validate(plan).errors
    assert (found.code, found.pointer) == ("task_id_invalid", "/tasks/1/id")
    assert said in found.message


def test_a_role_may_be_written_in_each_of_its_ways() -> None:
    plan = plan_of(step("a", role="writer"), step("b", role="role_writer"), step("c", role="roles.writer"))
    plan["roles"] = {"writer": {"description": "Writes."}}
    assert validate(plan).valid
    assert {task.role for task in to_structure(read_plan(plan)).tasks} == {"role_writer"}


def test_a_plan_of_too_many_tasks_is_refused_at_once() -> None:
    plan = plan_of(step("a"))
    plan["tasks"] = [{}] * 100_000
    assert _told(validate(plan).errors) == [("tasks_too_many", "/tasks")]


def test_the_largest_plans_are_valid() -> None:
    tasks = [step(f"t{n}") for n in range(TASKS_LIMIT - 1)]
    plan = plan_of(*tasks, step("last", *(f"t{n}" for n in range(1000))))
    assert validate(plan).valid
    plan["tasks"][-1]["dependsOn"].append("t1000")
    assert _told(validate(plan).errors) == [("dependencies_too_many", "/tasks/9999/dependsOn")]


def test_a_chain_of_ten_thousand_is_accepted_with_the_warning_that_it_is_too_serial() -> None:
    chain = plan_of(*(step(f"t{n}", *([f"t{n - 1}"] if n else []), outputs=[f"o{n}"]) for n in range(TASKS_LIMIT)))
    found = validate(chain)
    assert found.valid
    assert _told(found.warnings) == [("plan_too_serial", "/tasks")]


def test_ten_thousand_tasks_are_checked_in_linear_time() -> None:
    # The collector is off while the clock runs: in a process that has run thousands of other tests its pauses
    # grow with their leavings, and not with the plan.
    def seconds(count: int) -> float:
        plan = plan_of(*(step(f"t{n}", *(f"t{m}" for m in range(max(0, n - 5), n))) for n in range(count)))
        gc.collect()
        gc.disable()
        try:
            begun = time.process_time()
            validate(plan)
            return time.process_time() - begun
        finally:
            gc.enable()

    seconds(100)
    rounds = [(seconds(1000), seconds(10_000)) for _ in range(3)]
    assert min(large for _, large in rounds) < 40 * min(small for small, _ in rounds)


def test_of_findings_that_are_alike_the_first_are_told_and_that_there_are_more() -> None:
    plan = plan_of(*(step(f"t{n}", "nothing") for n in range(300)))
    del plan["name"]
    found = validate(plan).errors
    assert len(found) == ALIKE_LIMIT + 2
    assert found[0].code == "name_missing"
    assert found[-1].code == "findings_cut"


def test_a_hostile_plan_takes_no_more_time_than_a_large_one() -> None:
    plan = plan_of(*(step(f"t{n}") for n in range(3000)))
    for task in plan["tasks"]:
        task["dependsOn"] = [f"x{m}" for m in range(300)]
    begun = time.process_time()
    assert not validate(plan).valid
    assert time.process_time() - begun < 15


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.data())
def test_any_json_in_any_place_is_judged_and_never_breaks_the_judge(data: st.DataObject) -> None:
    plan: Any = copy.deepcopy(files.load(f"{FOLDER}/every-field.valid.json"))
    for _ in range(data.draw(st.integers(1, 3))):
        _put(plan, data)
    found = validate(plan)
    schema_valid = compile_schema(SCHEMA).is_valid(plan)
    if found.valid:
        assert schema_valid
        to_structure(read_plan(plan))


def _put(plan: Any, data: st.DataObject) -> None:
    """Put any JSON in any place of a plan."""
    place = plan
    while True:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and data.draw(st.booleans()):
            place = place[key]
        else:
            place[key] = data.draw(JSON)
            return


@given(st.integers(0, 8).flatmap(lambda n: st.lists(st.sets(st.integers(0, max(0, n - 1))), min_size=n, max_size=n)))
def test_a_cycle_is_found_exactly_when_there_is_one(upstream: list[set[int]]) -> None:
    edges = [sorted(above) for above in upstream]
    found = cycles(edges)
    # The oracle: whoever can reach itself stands on a cycle.
    reach = [set(above) for above in edges]
    for _ in edges:
        for place in range(len(edges)):
            reach[place] |= {far for near in reach[place] for far in edges[near]}
    on_cycles = {place for place in range(len(edges)) if place in reach[place]}
    assert bool(found) == bool(on_cycles)
    assert {place for cycle in found for place in cycle} <= on_cycles
    for cycle in found:
        for place, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert after in edges[place]
    # One for each knot of tasks that reach one another.
    knots = {
        frozenset(other for other in on_cycles if other in reach[place] and place in reach[other])
        for place in on_cycles
    }
    assert len(found) == len(knots)
