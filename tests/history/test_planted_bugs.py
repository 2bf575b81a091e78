"""The check of histories is seen to fail: whole servers with a bug, and histories and ledgers that were doctored."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.history.check import check_history
from tests.history.cluster import Run, run_load
from tests.history.ledger_file import Ledger, read_ledger

PLANTED = Path(__file__).with_name("planted.py")
# A unit answers at most one call of each of the eight agents: so there are more than 30 units.
ANSWERS = 300


@pytest.mark.parametrize(
    ("bug", "codes"), [("lost", {"lost"}), ("double", {"double_winner"}), ("gap", {"gap", "hash"})]
)
def test_a_bug_of_the_server_is_named(tmp_path: Path, bug: str, codes: set[str], record_property: Any) -> None:
    run = run_load(tmp_path, (sys.executable, str(PLANTED), bug), answers=ANSWERS)
    findings, _ = check_history(run.lines(), read_ledger(run.data / "redkey.db"))
    found = {finding.code for finding in findings}
    assert codes <= found, found
    record_property("proven", f"histories: the planted bug {bug!r} was found as {', '.join(sorted(found))}")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A history of a server without bugs, with some of every answer that is doctored below."""
    told = {"missed": 2, "rejected": 2, "completed": 10}
    return run_load(tmp_path_factory.mktemp("sound"), (sys.executable,), answers=250, told=told)


Doctor = Callable[[list[Any], Ledger], None]


def _calls(lines: list[Any], part: str, status: str) -> list[Any]:
    """The answers to calls of a path, that say this status."""
    paths = {line["key"]: line["path"] for line in lines if line["event"] == "invoke"}
    return [
        line
        for line in lines
        if line["event"] == "ok" and part in paths[line["key"]] and json.loads(line["reply"]).get("status") == status
    ]


def _of(ledger: Ledger, kind: str) -> list[int]:
    return [sequence for sequence, wire in ledger.wires.items() if wire["type"] == kind]


def record_is_gone(lines: list[Any], ledger: Ledger) -> None:
    del ledger.wires[_of(ledger, "task.complete")[3]]


def another_task_was_told(lines: list[Any], ledger: Ledger) -> None:
    line = _calls(lines, "/tasks", "available")[2]
    other = json.loads(_calls(lines, "/tasks", "available")[5]["reply"])["taskId"]
    line["reply"] = json.dumps({**json.loads(line["reply"]), "taskId": other})


def another_winner_was_recorded(lines: list[Any], ledger: Ledger) -> None:
    miss = ledger.wires[_of(ledger, "task.claim_missed")[0]]
    miss["payload"]["winning_claim_id"] = miss["payload"]["claim_id"]


def records_changed_places(lines: list[Any], ledger: Ledger) -> None:
    first, second = _of(ledger, "task.created")[2], _of(ledger, "task.created")[-2]
    ledger.wires[first], ledger.wires[second] = ledger.wires[second], ledger.wires[first]


def lease_was_not_lost(lines: list[Any], ledger: Ledger) -> None:
    """A claim that held until its end is told in the middle that it does not.

    It is one that was asked for by itself: where a claim came with the end of another, the record that the check
    knows of the call is the other's, and the claim could have begun after the start."""
    asked = {json.loads(line["reply"])["claimId"] for line in _calls(lines, "/claim", "claimed")}
    answer = next(line for line in _calls(lines, "/start", "started") if json.loads(line["reply"])["claimId"] in asked)
    answer["status"], answer["reply"] = 409, json.dumps({"code": "lease_lost"})


def answer_was_changed(lines: list[Any], ledger: Ledger) -> None:
    line = _calls(lines, "/tasks", "available")[0]
    lines.append({"event": "again", "key": line["key"], "status": 201, "reply": line["reply"] + " "})


def request_was_done_twice(lines: list[Any], ledger: Ledger) -> None:
    wires = [ledger.wires[sequence] for sequence in _of(ledger, "task.created")]
    wires[-1]["payload"]["idem"] = wires[0]["payload"]["idem"]


def task_was_invented(lines: list[Any], ledger: Ledger) -> None:
    created = ledger.wires[_of(ledger, "task.created")[0]]
    sent = sum(line["event"] == "invoke" and line["path"].endswith("/tasks") for line in lines)
    for number in range(sent):
        payload = {"queue_id": "q"}
        ledger.wires[len(ledger.wires) + 1] = {**created, "wire_id": f"wire_{number}", "payload": payload}


def attempt_was_not_answered(lines: list[Any], ledger: Ledger) -> None:
    del ledger.wires[_of(ledger, "task.claim_rejected")[-1]]


def ended_by_another(lines: list[Any], ledger: Ledger) -> None:
    first, second = _of(ledger, "task.complete")[:2]
    ledger.wires[first]["payload"]["claim_id"] = ledger.wires[second]["payload"]["claim_id"]


@pytest.mark.parametrize(
    ("doctor", "code"),
    [
        (record_is_gone, "lost"),
        (another_task_was_told, "changed"),
        (another_winner_was_recorded, "wrong_winner"),
        (records_changed_places, "order"),
        (lease_was_not_lost, "untrue_refusal"),
        (answer_was_changed, "answer_changed"),
        (request_was_done_twice, "repeated"),
        (task_was_invented, "invented"),
        (attempt_was_not_answered, "unanswered"),
        (ended_by_another, "not_holder"),
    ],
)
def test_a_doctored_history_is_named(sound: Run, doctor: Doctor, code: str) -> None:
    lines = [json.loads(line) for line in sound.lines()]
    ledger = deepcopy(read_ledger(sound.data / "redkey.db"))
    assert check_history(map(json.dumps, lines), ledger)[0] == []
    doctor(lines, ledger)
    assert code in {finding.code for finding in check_history(map(json.dumps, lines), ledger)[0]}
