"""Older and looser wires are lifted to valid 1.1 wires, always the same bytes, and losses are listed."""

from __future__ import annotations

import copy
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import WireRefused
from redkey.wire import files
from redkey.wire.canonical import canonical
from redkey.wire.legacy import validate_wire_1_0
from redkey.wire.lift import Lifted, Log, lift
from redkey.wire.validate import MESSAGE_LIMIT, validate
from tests.harness.replays import replay
from tests.wire.arbitrary import wires_1_0

LEGACY = "fixtures/agent-wire/v1.0"
LOOSE = "fixtures/agent-wire/loose"
GOLDEN = [
    *((LEGACY, name) for name in files.names(f"{LEGACY}/lifted", ".json")),
    *((LOOSE, name) for name in files.names(f"{LOOSE}/lifted", ".json")),
]


def _lift(name: str, log: Log | None = None) -> Lifted:
    return lift(files.load(f"{LEGACY}/{name}"), log)


@pytest.mark.parametrize(("folder", "name"), GOLDEN)
def test_a_wire_lifts_to_its_golden_form(folder: str, name: str) -> None:
    assert lift(files.load(f"{folder}/{name}")).as_json() == files.load(f"{folder}/lifted/{name}")


def test_every_wire_that_is_valid_has_a_golden_form() -> None:
    legacy = {name for name in files.names(LEGACY, ".json") if ".valid" in name}
    loose = {name for name in files.names(LOOSE, ".json") if not name.startswith(("refused", "expectations"))}
    assert {name for _, name in GOLDEN} == legacy | loose


@pytest.mark.parametrize("name", files.load(f"{LOOSE}/expectations.json"))
def test_what_cannot_be_lifted_is_refused_for_the_expected_reason(name: str) -> None:
    expected = files.load(f"{LOOSE}/expectations.json")[name]
    with pytest.raises(WireRefused) as refused:
        lift(files.load(f"{LOOSE}/{name}"))
    found = {(finding.code, finding.pointer) for finding in refused.value.findings()}
    assert (expected["code"], expected["pointer"]) in found


def test_an_unknown_version_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(WireRefused, match=r"known: 1\.0, 1\.1"):
        lift({"wire": "0.9", "type": "brief"})


def _check(lifted: Lifted) -> None:
    named = {item.ref["sha256"] for item in lifted.content}
    for wire in lifted.wires:
        assert validate(wire) == []
        assert len(canonical(wire)) <= MESSAGE_LIMIT
        for name, item in wire["payload"].items():
            if name.endswith("_ref"):
                assert item["sha256"] in named
    assert len({wire["wire_id"] for wire in lifted.wires}) == len(lifted.wires)


@given(wires_1_0)
def test_every_valid_1_0_message_lifts_to_valid_wires(value: dict[str, Any]) -> None:
    if validate_wire_1_0(value):
        return  # a time at the edge of the calendar that has no UTC
    before = copy.deepcopy(value)
    lifted = lift(value)
    assert value == before
    _check(lifted)
    assert lift(value).as_json() == lifted.as_json()


@given(st.lists(wires_1_0, max_size=12))
def test_a_whole_log_lifts_to_streams_without_gap(values: list[dict[str, Any]]) -> None:
    log = Log()
    seen: dict[str, list[int]] = {}
    for value in values:
        if validate_wire_1_0(value):
            continue
        for wire in lift(value, log).wires:
            seen.setdefault(wire["stream"]["stream_id"], []).append(wire["stream"]["stream_seq"])
    assert all(places == list(range(1, len(places) + 1)) for places in seen.values())


def test_the_wire_id_comes_from_the_bytes_of_the_message_and_not_from_its_spelling() -> None:
    value = files.load(f"{LEGACY}/claim.valid.json")
    shuffled = dict(reversed(value.items()))
    assert lift(value).wires[0]["wire_id"] == lift(shuffled).wires[0]["wire_id"]
    assert lift({**value, "ts": "2026-04-28T09:43:16Z"}).wires[0]["wire_id"] != lift(value).wires[0]["wire_id"]


def test_content_is_named_by_the_hash_of_its_canonical_bytes() -> None:
    lifted = _lift("brief.valid.json")
    (item,) = lifted.content
    assert lifted.wires[0]["payload"]["content_ref"] == {
        "sha256": sha256(item.data).hexdigest(),
        "bytes": len(item.data),
    }
    assert lifted.as_json()["content"][0]["document"]["brief"] == files.load(f"{LEGACY}/brief.valid.json")


def test_no_prose_of_a_message_is_left_on_the_wires() -> None:
    for name in ("brief.valid.json", "blocked.valid.json", "complete.valid.json", "inbox.valid.json"):
        value = files.load(f"{LEGACY}/{name}")
        written = b"".join(canonical(wire) for wire in lift(value).wires)
        prose = [text for text in value["payload"].values() if isinstance(text, str) and " " in text]
        assert prose
        assert not any(text.encode() in written for text in prose)


def test_a_log_carries_context_claim_and_order_from_brief_to_end() -> None:
    log = Log()
    wires = [
        wire
        for name in ("brief.valid.json", "claim.valid.json", "complete.valid.json")
        for wire in _lift(name, log).wires
    ]
    created, available, claimed, artifact, complete = wires
    assert [wire["type"] for wire in wires[:3]] == ["task.created", "task.available", "task.claimed"]
    assert [wire["type"] for wire in wires[3:]] == ["artifact.ready", "task.complete"]
    assert [wire["stream"]["stream_seq"] for wire in wires] == [1, 2, 3, 4, 5]
    assert {wire["stream"]["context_id"] for wire in wires} == {"project:knowledgevault-m01r"}
    assert available["payload"] == {}
    assert len({wire["payload"]["claim_id"] for wire in (claimed, artifact, complete)}) == 1
    assert complete["payload"]["artifact_ids"] == [artifact["payload"]["artifact_id"]]
    # What the brief requires is what the artifact is called.
    assert created["payload"]["outputs"] == [artifact["payload"]["name"]]


def test_a_lifted_log_replays_to_a_completed_task() -> None:
    log = Log()
    names = ("brief.valid.json", "claim.valid.json", "complete.valid.json")
    state = replay([wire for name in names for wire in _lift(name, log).wires]).as_json()
    assert state["void"] == []
    assert [task["task_state"] for task in state["tasks"].values()] == ["completed"]


def test_a_second_claim_of_the_same_agent_is_another_hold() -> None:
    log = Log()
    first = _lift("claim.valid.json", log).wires[0]["payload"]["claim_id"]
    blocked = _lift("blocked.valid.json", log).wires[0]["payload"]["claim_id"]
    second = _lift("claim.valid.json", log).wires[0]["payload"]["claim_id"]
    complete = _lift("complete.valid.json", log).wires[-1]["payload"]["claim_id"]
    assert first == blocked != second == complete


def test_a_failed_mechanical_check_is_a_block_and_never_a_completion() -> None:
    lifted = _lift("complete.valid-verification-fail.json")
    (wire,) = lifted.wires
    assert (wire["type"], wire["payload"]["blocker_type"]) == ("task.blocked", "verification_fail")
    assert {finding.pointer for finding in lifted.lost} == {
        "/payload/cost_usd",
        "/payload/duration_seconds",
        "/payload/verification/semantic",
        "/payload/output_ref",
    }


@pytest.mark.parametrize(
    ("sender", "expected"),
    [("quinn", "agent:quinn"), ("system", "system"), ("runner", "runner:runner"), ("human", "human:human")],
)
def test_senders_become_those_of_1_1(sender: str, expected: str) -> None:
    assert lift({**files.load(f"{LEGACY}/claim.valid.json"), "sender": sender}).wires[0]["sender"] == expected


def test_a_name_that_1_1_cannot_spell_is_replaced_and_listed_as_lost() -> None:
    lifted = _lift("claim.valid-role-prefix.json")
    payload = lifted.wires[0]["payload"]
    assert payload["agent_id"].startswith("agt_")
    assert payload["role_id"] == "role_content-writer"
    assert [finding.pointer for finding in lifted.lost] == ["/payload/agent"]


def test_mail_to_a_human_is_on_the_stream_of_the_logs_workspace() -> None:
    workspace = "wk_01HZYB4X9Q6W3N8E2R7T5V1K0M"
    lifted = _lift("inbox.valid-to-human.json", Log(workspace_id=workspace))
    assert lifted.wires[0]["stream"]["stream_id"] == f"workspace:{workspace}"
    assert lifted.wires[0]["payload"]["to"] == "human"


def test_a_strict_wire_is_lifted_to_itself() -> None:
    value = files.load(f"{LOOSE}/strict-task-available.json")
    assert lift(value) == Lifted((value,))


@pytest.mark.parametrize("name", files.names(f"{LOOSE}/lifted", ".json"))
def test_lifting_twice_changes_nothing_and_leaves_the_wire_alone(name: str) -> None:
    value = files.load(f"{LOOSE}/{name}")
    before = copy.deepcopy(value)
    wires = lift(value).wires
    assert value == before
    for wire in wires:
        assert lift(wire) == Lifted((wire,))


@pytest.mark.parametrize("part", ["stream", "payload", "type", "wire_id", "state"])
@pytest.mark.parametrize("broken", [7, "text", [], None, {}])
def test_a_loose_wire_with_a_broken_part_is_refused_and_never_raises_otherwise(part: str, broken: Any) -> None:
    for name in ("flat-task-started.json", "task-claim.json"):
        with pytest.raises(WireRefused):
            lift({**files.load(f"{LOOSE}/{name}"), part: broken, "sender": "nobody at all"})
