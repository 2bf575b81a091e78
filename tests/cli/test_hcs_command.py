"""`redkey hcs verify` checks saved answers of mirror nodes, and says what it could and could not check."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.ledger.mirror import mirror_page, mirror_row
from redkey.ledger.note import encode_base64
from tests.harness.small_log import SmallLog

VECTORS = Path(__file__).parents[1] / "ledger" / "vectors" / "hcs_running_hash.json"


def public_rows() -> list[dict[str, Any]]:
    return [
        {
            "chunk_info": None,
            "consensus_timestamp": row["ts"],
            "message": row["message_b64"],
            "payer_account_id": row["payer"],
            "running_hash": encode_base64(bytes.fromhex(row["running_hash"])),
            "running_hash_version": 3,
            "sequence_number": row["seq"],
            "topic_id": row["topic"],
        }
        for row in json.loads(VECTORS.read_text())["rows"]
    ]


def verify(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["hcs", "verify", *map(str, arguments)], input=stdin)


def told(*arguments: object, stdin: str | None = None) -> dict[str, Any]:
    result = verify("--json", *arguments, stdin=stdin)
    answer: dict[str, Any] = json.loads(result.output)
    assert result.exit_code == (0 if answer["valid"] else 1)
    return answer


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"links": {"next": None}, "messages": public_rows()}))
    return path


def test_rows_of_public_networks_verify_and_the_one_without_predecessor_is_named(page: Path) -> None:
    answer = told(page)
    assert (answer["valid"], answer["verified"], answer["unchecked"], answer["bad"]) == (True, 14, 1, 0)
    (alone,) = answer["uncheckedRows"]
    assert (alone["topicId"], alone["sequenceNumber"], alone["code"]) == ("0.0.120438", 515545728, "no_predecessor")
    assert answer["topics"]["0.0.120438"]["first"] == 515545728
    assert answer["firstBad"] is None


def test_people_read_a_line_per_topic_and_per_row_that_was_not_checked(page: Path) -> None:
    result = verify(page)
    assert result.exit_code == 0
    assert "topic 0.0.4603900: rows 1 to 3: 3 verified, 0 unchecked, 0 bad\n" in result.output
    assert "row 515545728: no_predecessor: row 515545727 is not there" in result.output


def test_strict_fails_for_a_row_that_was_not_checked_and_for_a_gap(page: Path, tmp_path: Path) -> None:
    """A range that does not begin at the first message, and one with a hole, prove nothing about what is missing."""
    answer = json.loads(verify("--strict", "--json", page).output)
    assert (answer["valid"], answer["unchecked"], answer["missing"]) == (False, 1, 0)
    assert verify("--strict", page).exit_code == 1
    log = SmallLog(10)
    whole, holed, late = tmp_path / "whole", tmp_path / "holed", tmp_path / "late"
    whole.write_text(json.dumps(mirror_page(log.records, full=True)))
    holed.write_text(json.dumps(mirror_page([*log.records[:4], *log.records[6:]], full=True)))
    late.write_text(json.dumps(mirror_page(log.records[3:], full=True)))
    assert verify("--strict", whole).exit_code == 0
    assert verify("--strict", late).exit_code == 1
    result = verify("--strict", holed)
    assert result.exit_code == 1
    assert "2 missing" in result.output
    assert verify(holed).exit_code == 0
    assert json.loads(verify("--json", holed).output)["missing"] == 2


def test_several_pages_in_any_order_and_form_are_one_stream(tmp_path: Path) -> None:
    log = SmallLog(10)
    pages = [mirror_page(log.records[at : at + 3], full=True) for at in (6, 3, 0)]
    files = []
    for number, page in enumerate(pages):
        files.append(tmp_path / f"{number}.json")
        files[-1].write_text(json.dumps(page, indent=2))
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(mirror_row(record)) + "\n" for record in log.records[9:]))
    assert told(*files, lines)["verified"] == 10
    together = tmp_path / "pages.json"
    together.write_text(json.dumps(pages))
    assert told(together)["verified"] == 9
    as_lines = tmp_path / "pages.ndjson"
    as_lines.write_text("".join(json.dumps(page) + "\n" for page in pages))
    assert told(as_lines)["verified"] == 9
    listed = tmp_path / "rows.json"
    listed.write_text(json.dumps([mirror_row(record) for record in log.records]))
    assert told(listed)["verified"] == 10


def test_standard_input_is_read(page: Path) -> None:
    assert told("-", stdin=page.read_text())["verified"] == 14


def test_the_first_bad_row_is_named_by_its_place_in_the_topic(tmp_path: Path) -> None:
    rows = public_rows()
    rows[9]["message"] = "b3RoZXI="
    rows[12]["payer_account_id"] = "0.0.1"
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"messages": rows[::-1]}))
    answer = told(path)
    assert (answer["bad"], answer["verified"]) == (2, 12)
    assert answer["firstBad"]["sequenceNumber"] == rows[9]["sequence_number"]
    assert answer["firstBad"]["code"] == "running_hash_wrong"
    assert answer["firstBad"]["place"] == f"{path}[5]"
    result = verify(path)
    assert result.exit_code == 1
    assert f"first bad row: {path}[5]: topic 0.0.120438 row {rows[9]['sequence_number']}" in result.output


def test_rows_that_are_none_are_bad_and_the_rest_is_checked(tmp_path: Path) -> None:
    rows = public_rows()[:3]
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"messages": [*rows, {"sequence_number": "4"}, None]}))
    answer = told(path)
    assert (answer["verified"], answer["bad"]) == (3, 2)
    assert [row["place"] for row in answer["badRows"]] == [f"{path}[3]", f"{path}[4]"]


def test_versions_payers_chunks_and_repetitions_are_counted(tmp_path: Path) -> None:
    rows = public_rows()[:3]
    rows[1]["running_hash_version"] = 2
    rows[2]["payer_account_id"] = None
    rows[0]["chunk_info"] = {"number": 1, "total": 1}
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"messages": [*rows, rows[0]]}))
    answer = told(path)
    assert (answer["verified"], answer["unchecked"], answer["repeated"]) == (1, 2, 1)
    result = verify(path)
    assert "1 repeated, 2 chunked (chunk information is not hashed)" in result.output
    assert "only version 3 can be checked" in result.output
    assert "it names no payer" in result.output


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "json_syntax"),
        ("{", "json_syntax"),
        ('{"messages":[],"messages":[]}', "json_duplicate_key"),
        ('{"_status":{"messages":[{"message":"Not found"}]}}', "mirror_error"),
        ('{"messages":5}', "mirror_malformed"),
        ("[" * 100 + "]" * 100, "json_too_deep"),
    ],
)
def test_a_file_that_is_no_answer_is_named(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "page.json"
    path.write_text(text)
    answer = told(path)
    assert answer["firstBad"]["code"] == code
    assert answer["firstBad"]["place"].startswith(str(path))


def test_nothing_to_check_is_no_success(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    path.write_text('{"messages": [], "links": {"next": null}}')
    result = verify(path)
    assert result.exit_code == 1
    assert "nothing that could be checked" in result.output


def test_a_missing_file_is_a_wrong_use(tmp_path: Path) -> None:
    assert verify(tmp_path / "none.json").exit_code == 2
    assert verify().exit_code == 2


def test_what_a_stranger_wrote_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"messages": [{**public_rows()[0], "topic_id": "\x1b[2J0.0.1"}]}))
    assert "\x1b[2J" not in verify(path).output


def test_a_long_stream_is_checked_as_it_comes() -> None:
    script = (
        "import json, sys\n"
        "from redkey.ledger.mirror import mirror_row\n"
        "from redkey.ledger.record import EMPTY_HEAD, Head\n"
        "from redkey.ledger.running_hash import chained\n"
        "head = EMPTY_HEAD\n"
        "for number in range(20_000):\n"
        "    record, _ = chained(head, '0.0.9', '0.0.2', 10**18 + number, b'x' * 900)\n"
        "    head = Head(record.sequence, record.timestamp, record.running_hash)\n"
        "    sys.stdout.write(json.dumps(mirror_row(record), separators=(',', ':')) + '\\n')\n"
    )
    command = Path(sys.executable).with_name("redkey")
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as source:
        arguments = [command, "hcs", "verify", "--json", "-"]
        done = subprocess.run(arguments, stdin=source.stdout, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert (answer["valid"], answer["verified"]) == (True, 20_000)
