"""`redkey wire` validates, lifts and replays files for people and machines, and exits 0, 1 or 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from redkey.cli import main
from redkey.wire import files
from redkey.wire.canonical import canonical
from redkey.wire.validate import validate
from tests.wire.arbitrary import gone_wrong

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
FIXTURES = files.root() / "fixtures/agent-wire/v1.1"
OLD = files.root() / "fixtures/agent-wire/v1.0"
EXPECTATIONS = files.load("fixtures/agent-wire/v1.1/expectations.json")
WIRES = sorted(
    path for path in FIXTURES.glob("*.valid*.json") if not path.name.startswith(("message.", "part.", "artifact."))
)
HAPPY = ["task-created", "task-available", "task-claimed", "task-started", "artifact-ready", "task-complete"]


def _run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["wire", *arguments], input=stdin)


def _happy() -> list[dict[str, Any]]:
    return [orjson.loads((FIXTURES / f"{name}.valid.json").read_bytes()) for name in HAPPY]


def _lines(values: list[Any]) -> bytes:
    return b"".join(orjson.dumps(value) + b"\n" for value in values)


def _told(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.split("\n") if line]


# validate


@pytest.mark.parametrize("path", WIRES, ids=lambda path: path.name)
def test_every_valid_fixture_is_valid(path: Path) -> None:
    result = _run("validate", str(path))
    event = orjson.loads(path.read_bytes())["type"]
    assert result.exit_code == 0
    assert result.output == f"{path}: valid Agent Wire 1.1 {event}\n"


@pytest.mark.parametrize("name", [name for name in EXPECTATIONS if EXPECTATIONS[name]["stage"] != "transition"])
def test_every_invalid_fixture_is_told_with_its_code_and_pointer(name: str) -> None:
    if name.startswith(("message.", "part.", "artifact.")):
        return
    expected = EXPECTATIONS[name]
    if name == "envelope.invalid-not-an-object.json":
        # On the command line a list is a list of wires, and this one holds a valid one.
        assert _run("validate", str(FIXTURES / name)).output.endswith("valid Agent Wire 1.1 task.started\n")
        return
    result = _run("validate", "--json", str(FIXTURES / name))
    assert result.exit_code == 1
    (told,) = _told(result)
    assert not told["valid"]
    assert (expected["code"], expected["pointer"]) in {(f["code"], f["pointer"]) for f in told["findings"]}


def test_a_finding_is_a_line_with_file_pointer_code_and_sentence() -> None:
    path = FIXTURES / "task-started.invalid-other-attempt.json"
    result = _run("validate", str(path))
    assert result.exit_code == 1
    sentence = "the stream id has 1; the payload must have the same value or none"
    assert result.output == f"{path}: /payload/attempt: stream_mismatch: {sentence}\n"


def test_many_files_are_counted() -> None:
    result = _run("validate", *map(str, WIRES), str(FIXTURES / "bytes.invalid-nan.json"))
    assert result.exit_code == 1
    assert result.output.endswith(f"{len(WIRES)} valid, 1 invalid\n")


def test_json_lines_are_named_by_line_and_one_bad_line_spoils_no_other(tmp_path: Path) -> None:
    wires = _happy()
    wires[2]["sender"] = "quinn"
    path = tmp_path / "log.jsonl"
    path.write_bytes(_lines(wires[:4]) + b"\n\nnot json\n" + _lines(wires[4:]))
    result = _run("validate", "--json", str(path))
    assert result.exit_code == 1
    told = _told(result)
    assert [(one["file"].rpartition(":")[2], one["valid"]) for one in told] == [
        ("1", True),
        ("2", True),
        ("3", False),
        ("4", True),
        ("7", False),
        ("8", True),
        ("9", True),
    ]
    quiet = _run("validate", "-q", str(path))
    assert len(quiet.output.splitlines()) == 3 + 1
    assert quiet.output.endswith("5 valid, 2 invalid\n")


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_wires_is_one_document_with_pointers_into_it(tmp_path: Path, indent: int | None) -> None:
    wires = _happy()
    path = tmp_path / "wires.json"
    path.write_text(json.dumps(wires, indent=indent))
    result = _run("validate", str(path))
    assert (result.exit_code, result.output) == (0, f"{path}: valid 6 wires\n")
    wires[3]["payload"]["attempt"] = 2
    path.write_text(json.dumps(wires, indent=indent))
    result = _run("validate", "--json", str(path))
    assert result.exit_code == 1
    assert [finding["pointer"] for finding in _told(result)[0]["findings"]] == ["/3/payload/attempt"]


def test_a_list_in_a_list_is_no_wire() -> None:
    result = _run("validate", "--json", "-", stdin=orjson.dumps([_happy()]))
    assert [(f["pointer"], f["code"]) for f in _told(result)[0]["findings"]] == [("/0", "schema_type")]


def test_records_of_a_ledger_dump_are_looked_into() -> None:
    hcs = {"topic_id": "1.0.1001", "sequence_number": 1}
    records = [{"wire": wire, "hcs": hcs, "payer": "1.0.2"} for wire in _happy()]
    assert _run("validate", "-q", "-", stdin=_lines(records)).output == "6 valid, 0 invalid\n"
    records[1]["wire"]["wire_id"] = "wire_1"
    result = _run("validate", "--json", "-", stdin=_lines(records))
    assert [f["pointer"] for f in _told(result)[1]["findings"]] == ["/wire/wire_id"]


def test_standard_input_is_a_file_like_any_other() -> None:
    result = _run("validate", "-", stdin=orjson.dumps(_happy()[0]))
    assert (result.exit_code, result.output) == (0, "stdin: valid Agent Wire 1.1 task.created\n")


@pytest.mark.parametrize("kind", ["brief", "inbox", "complete", "blocked", "claim"])
def test_wires_of_1_0_are_judged_as_1_0(kind: str) -> None:
    path = OLD / f"{kind}.valid.json"
    result = _run("validate", str(path))
    assert (result.exit_code, result.output) == (0, f"{path}: valid Agent Wire 1.0 {kind}\n")


def test_a_broken_wire_of_1_0_is_told_by_its_own_contract() -> None:
    result = _run("validate", "--json", str(OLD / "blocked.invalid-missing-agent.json"))
    assert result.exit_code == 1
    assert [f["pointer"] for f in _told(result)[0]["findings"]] == ["/payload/agent"]


@pytest.mark.parametrize(
    "arguments",
    [[], ["validate"], ["validate", "/no/such/file.json"], ["validate", "."], ["replay"], ["lift", "a", "b"], ["mend"]],
    ids=lambda arguments: "-".join(arguments) or "nothing",
)
def test_wrong_use_exits_2(arguments: list[str]) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.output


def test_text_of_strangers_cannot_write_to_the_terminal() -> None:
    wire = _happy()[0] | {"\x1b[31mred": 1}
    result = _run("validate", "-", stdin=orjson.dumps(wire))
    assert result.exit_code == 1
    assert "\x1b" not in result.output


@given(gone_wrong([orjson.loads(path.read_bytes()) for path in WIRES]), st.sampled_from(["validate", "lift", "replay"]))
def test_any_document_ends_in_an_exit_code_and_never_in_a_traceback(value: Any, verb: str) -> None:
    result = _run(verb, "-", "--json", stdin=orjson.dumps(value))
    assert result.exit_code in (0, 1)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert _told(result) or result.exit_code == 0


@given(st.binary(max_size=200), st.sampled_from(["validate", "lift", "replay"]))
def test_any_bytes_end_in_an_exit_code_and_never_in_a_traceback(data: bytes, verb: str) -> None:
    result = _run(verb, "-", stdin=data)
    assert result.exit_code in (0, 1)
    assert result.exception is None or isinstance(result.exception, SystemExit)


# Runs the command on what it is fed, and tells how many megabytes it took at most. Not by getrusage: that counts
# what the process was before exec, which is as large as the one that runs these tests.
MEASURED = """
import re, sys
from redkey.cli import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    with open("/proc/self/status") as status:
        print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) // 1024, ended.code)
"""


def _measure(chunks: int, chunk: bytes, *arguments: str) -> tuple[int, int, list[str]]:
    """Peak megabytes, exit code and output of the command reading so many chunks from a pipe."""
    command = [sys.executable, "-c", MEASURED, "wire", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # The command need not read on when it has seen enough.
        with suppress(BrokenPipeError):
            for _ in range(chunks):
                process.stdin.write(chunk)
        with suppress(BrokenPipeError):
            process.stdin.close()
        lines = process.stdout.read().decode().splitlines()
    peak, code = lines[-1].split()
    return int(peak), int(code), lines[:-1]


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak this way")


@needs_proc
def test_memory_does_not_grow_with_a_file_of_json_lines() -> None:
    chunk = _lines(_happy()) * 100
    small, *_ = _measure(1, chunk, "validate", "-q", "-")
    chunks = 3000 if LONG else 60
    peak, code, output = _measure(chunks, chunk, "validate", "-q", "-")
    assert (code, output) == (0, [f"{chunks * 600} valid, 0 invalid"])
    assert peak < small + 16


@needs_proc
def test_a_line_beyond_the_limit_is_refused_in_bounded_memory_and_the_next_is_read() -> None:
    line = orjson.dumps(_happy()[0])
    chunks = 1000 if LONG else 80
    wide, code, output = _measure(chunks, b"1" * (1024 * 1024), "validate", "--json", "-")
    assert code == 1
    assert json.loads(output[0])["findings"][0]["code"] == "json_too_large"
    long = line + b"\n" + b'{"a":"' + b"x" * (20 * 1024 * 1024) + b'"}\n' + line + b"\n"
    peak, code, output = _measure(1, long, "validate", "--json", "-")
    assert code == 1
    assert [json.loads(text)["valid"] for text in output] == [True, False, True]
    assert json.loads(output[1])["findings"][0]["code"] == "json_too_large"
    assert max(wide, peak) < 250


# lift


def test_lifted_wires_are_valid_json_lines_and_losses_go_to_standard_error() -> None:
    result = _run("lift", str(OLD / "brief.valid.json"))
    assert result.exit_code == 0
    wires = _told(result)
    assert [wire["type"] for wire in wires][:1] == ["task.created"]
    assert not [finding for wire in wires for finding in validate(wire)]
    assert "lift_assumed" in result.stderr


def test_lift_tells_machines_everything() -> None:
    result = _run("lift", "--json", str(OLD / "complete.valid.json"))
    (told,) = _told(result)
    assert told.keys() == {"file", "wires", "content", "lost", "assumed"}
    assert [wire["type"] for wire in told["wires"]] == ["artifact.ready", "task.complete"]


def test_content_of_lifted_wires_can_be_kept(tmp_path: Path) -> None:
    result = _run("lift", str(OLD / "brief.valid.json"), "--content", str(tmp_path / "content"))
    ref = _told(result)[0]["payload"]["content_ref"]
    kept = (tmp_path / "content" / f"{ref['sha256']}.json").read_bytes()
    assert len(kept) == ref["bytes"]


def test_content_that_cannot_be_kept_is_a_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = _run("lift", str(OLD / "brief.valid.json"), "--content", str(tmp_path / "file" / "below"))
    assert result.exit_code == 2
    assert "cannot be written" in result.output


def test_a_log_of_1_0_is_lifted_as_one_and_replayed() -> None:
    log = [orjson.loads((OLD / f"{kind}.valid.json").read_bytes()) for kind in ("brief", "claim", "complete")]
    log[1]["payload"]["task_id"] = log[2]["payload"]["task_id"] = log[0]["payload"]["env"]["task_id"]
    log[1]["payload"]["agent"] = log[2]["payload"]["agent"]
    lifted = _run("lift", "-", stdin=_lines(log))
    assert lifted.exit_code == 0
    state = json.loads(_run("replay", "-", stdin=lifted.stdout.encode()).output)
    assert state["counts"]["void"] == 0
    assert [task["task_state"] for task in state["tasks"].values()] == ["completed"]


def test_what_cannot_be_lifted_is_told_and_the_rest_is_lifted() -> None:
    good = (OLD / "claim.valid.json").read_bytes()
    lines = _lines([{"wire": "3.0"}, orjson.loads(good), {"wire": "1.0", "type": "claim"}])
    result = _run("lift", "-", stdin=lines)
    assert result.exit_code == 1
    assert [wire["type"] for wire in _told(result)] == ["task.claimed"]
    assert "stdin:1: /wire: unknown_version" in result.stderr
    assert "stdin:3: /payload: schema_required" in result.stderr


def test_a_wire_of_1_1_lifts_to_itself() -> None:
    wire = _happy()[0]
    assert _told(_run("lift", "-", stdin=orjson.dumps(wire))) == [wire]


# replay


@pytest.mark.parametrize("shape", ["lines", "list", "pretty list", "records"])
def test_replay_prints_the_state_whatever_the_file_looks_like(shape: str) -> None:
    wires = _happy()
    data = {
        "lines": _lines(wires),
        "list": orjson.dumps(wires),
        "pretty list": json.dumps(wires, indent=2).encode(),
        "records": _lines([{"wire": wire, "hcs": {}, "payer": "1.0.2"} for wire in wires]),
    }[shape]
    result = _run("replay", "-", stdin=data)
    assert result.exit_code == 0
    state = json.loads(result.output)
    assert state["counts"] == {"wires": 6, "applied": 6, "void": 0, "others": 0, "reasons": {}}
    assert state["tasks"]["0.0.8830671"]["task_state"] == "completed"
    assert state["tasks"]["0.0.8830671"]["artifact_count"] == 1
    assert len(result.output.splitlines()) > 10
    assert len(_run("replay", "--json", "-", stdin=data).output.splitlines()) == 1


def _pinned(structure: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A line of a dump with this structure, and the ref that names it."""
    data = canonical(structure)
    ref = {"sha256": sha256(data).hexdigest(), "bytes": len(data)}
    return {"structure": structure, "sha256": ref["sha256"], "topic_id": "1.0.1001"}, ref


def _with_structure(ref: dict[str, Any]) -> list[dict[str, Any]]:
    wires = _happy()
    for name in ("roles", "outputs", "lease_seconds", "deadline_seconds", "max_attempts"):
        del wires[0]["payload"][name]
    wires[0]["payload"]["structure_ref"] = ref
    return wires


@pytest.mark.parametrize(("outputs", "ends"), [(["code_commit"], "completed"), (["code_commit", "report"], "working")])
def test_a_dump_brings_the_structure_that_decides_whether_a_task_is_complete(outputs: list[str], ends: str) -> None:
    line, ref = _pinned({"outputs": outputs})
    body = {"content": {"data": "", "offset": 0, "total": 0}, "sha256": "0" * 64, "topic_id": "1.0.1001"}
    records = [{"wire": wire, "hcs": {}, "payer": "1.0.2"} for wire in _with_structure(ref)]
    result = _run("replay", "-", stdin=_lines([line, *records, body]))
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["tasks"]["0.0.8830671"]["task_state"] == ends
    assert _run("validate", "-q", "-", stdin=_lines([line, *records, body])).exit_code == 0


def test_a_dump_brings_the_plan_of_a_workflow() -> None:
    tasks = [{"id": "implement", "role": "role_developer", "outputs": ["code_commit", "report"]}]
    line, ref = _pinned({"structure": "1.0", "max_parallel_tasks": 1, "tasks": tasks})
    started = orjson.loads((FIXTURES / "workflow-started.valid.json").read_bytes())
    created = orjson.loads((FIXTURES / "task-created.valid-plan.json").read_bytes())
    started["payload"]["structure_ref"] = ref
    result = _run("replay", "-", stdin=_lines([line, started, created]))
    (task,) = json.loads(result.output)["tasks"].values()
    assert task["attempts"]["1"]["outputs"] == ["code_commit", "report"]


def test_structure_without_the_hash_that_names_it_is_refused() -> None:
    line, ref = _pinned({"outputs": ["code_commit"]})
    result = _run("replay", "-", stdin=_lines([line | {"structure": {"outputs": []}}, *_with_structure(ref)]))
    assert result.exit_code == 1
    assert "stdin:1: /sha256: structure_mismatch" in result.stderr


@pytest.mark.parametrize("structure", [{}, {"outputs": 7}, {"outputs": [7]}, {"tasks": "none"}])
def test_structure_of_any_shape_ends_in_a_state(structure: dict[str, Any]) -> None:
    line, ref = _pinned(structure)
    started = orjson.loads((FIXTURES / "workflow-started.valid.json").read_bytes())
    created = orjson.loads((FIXTURES / "task-created.valid-plan.json").read_bytes())
    started["payload"]["structure_ref"] = ref
    assert _run("replay", "-", stdin=_lines([line, started, created, *_with_structure(ref)])).exit_code == 0


def test_a_void_wire_is_kept_with_its_reason() -> None:
    wires = _happy()
    result = _run("replay", "-", stdin=_lines([wires[0], wires[3]]))
    assert result.exit_code == 0
    state = json.loads(result.output)
    assert [void["reason"] for void in state["void"]] == ["transition_refused"]


def test_a_log_with_an_invalid_wire_has_no_state() -> None:
    wires = _happy()
    wires[1]["sender"] = "quinn"
    result = _run("replay", "-", stdin=_lines(wires))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "stdin:2: /sender: schema_" in result.stderr


def test_wires_of_1_0_must_be_lifted_before_they_are_replayed() -> None:
    result = _run("replay", str(OLD / "brief.valid.json"))
    assert result.exit_code == 1
    assert "lift it to 1.1 first" in result.stderr


def test_the_same_wires_give_the_same_bytes() -> None:
    outputs = {_run("replay", "--json", "-", stdin=data).stdout for data in (_lines(_happy()), canonical(_happy()))}
    assert len(outputs) == 1


def test_the_rules_of_prose_of_a_brief_are_judged_as_by_the_server() -> None:
    payload = {
        "goal": "Build it. Then stop.",
        "context": "word " * 201,
        "constraints": [],
        "acceptance_criteria": ["It is."],
        "output_contract": {"type": "message", "output_ref_required": False, "min_length": 0},
        "escalation_triggers": [],
        "env": {"client_id": "test", "task_id": "0.0.1"},
    }
    brief = {"wire": "1.0", "type": "brief", "sender": "system", "ts": "2026-04-28T00:00:00Z", "payload": payload}
    result = CliRunner().invoke(main, ["wire", "validate", "-", "--json"], input=json.dumps(brief))
    assert result.exit_code == 1
    codes = {finding["code"] for finding in json.loads(result.output)["findings"]}
    assert codes >= {"goal_sentences", "context_words"}
    whole = {**brief, "payload": {**payload, "goal": "It is built.", "context": "Short."}}
    assert CliRunner().invoke(main, ["wire", "validate", "-"], input=json.dumps(whole)).exit_code == 0
