"""`redkey ledger`: dump, load, tail, replay and export, as somebody at a terminal uses them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.readmodel.digest import rows_digest
from redkey.stores.opening import open_signing
from redkey.stores.sqlite import SqliteStore
from tests.harness.tampering import BASE, records, sql
from tests.harness.workshop import Workshop, checked, lived_in

REDKEY = Path(sys.executable).with_name("redkey")


def redkey(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], input=stdin)


def ledger(*arguments: object, stdin: bytes | None = None) -> Result:
    return redkey("ledger", *arguments, stdin=stdin)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return lived_in(tmp_path / "data")


# Dump and load.


@pytest.mark.parametrize("content", [(), ("--content",)])
def test_dump_load_and_dump_again_give_the_same_bytes(directory: Path, tmp_path: Path, content: tuple[str]) -> None:
    first = ledger("dump", directory, *content)
    assert first.exit_code == 0, first.output
    (tmp_path / "dump.jsonl").write_bytes(first.stdout_bytes)
    loaded = ledger("load", tmp_path / "dump.jsonl", tmp_path / "again")
    assert loaded.exit_code == 0, loaded.output
    assert "747 records of 1 topics, 1 structures" in loaded.output
    assert ledger("dump", tmp_path / "again", *content, "--out", tmp_path / "again.jsonl").exit_code == 0
    assert (tmp_path / "again.jsonl").read_bytes() == first.stdout_bytes
    assert checked(tmp_path / "again").clean


def test_a_dump_can_come_from_standard_input(directory: Path, tmp_path: Path) -> None:
    data = ledger("dump", directory).stdout_bytes
    told = json.loads(ledger("load", "-", tmp_path / "again", "--json", stdin=data).output)
    assert told["records"] == 747
    assert told["contents"] == 0


def test_a_bad_line_is_named_and_nothing_is_left(directory: Path, tmp_path: Path) -> None:
    lines = ledger("dump", directory).stdout_bytes.splitlines(keepends=True)
    lines[300] = lines[300].replace(b'"payer":"1.0.2"', b'"payer":"1.0.3"')
    result = ledger("load", "-", tmp_path / "again", stdin=b"".join(lines))
    assert result.exit_code == 1
    assert "line 301: " in result.output
    assert "running_hash_wrong" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_nothing_is_loaded_over(directory: Path, tmp_path: Path) -> None:
    result = ledger("load", "-", directory, stdin=ledger("dump", directory).stdout_bytes)
    assert result.exit_code == 1
    assert "target_exists" in result.output


def test_only_the_chosen_topic_is_dumped(directory: Path) -> None:
    with Workshop(directory, lane=2) as workshop:
        workshop.furnish()
    result = ledger("dump", directory, "--topic", workshop.topic)
    topics = {json.loads(line)["hcs"]["topic_id"] for line in result.stdout_bytes.splitlines()}
    assert topics == {workshop.topic}
    assert ledger("dump", directory, "--topic", "1.0.9").exit_code == 2


def test_a_damaged_ledger_ends_the_dump(directory: Path) -> None:
    sql(directory, "UPDATE record SET payer = '1.0.3' WHERE position = ?", BASE + 70)
    result = ledger("dump", directory)
    assert result.exit_code == 1
    assert "record 70 of topic 1.0.1001 is damaged" in result.stderr
    assert "redkey fsck" in result.stderr


# Tail.


def test_tail_shows_the_last_records(directory: Path) -> None:
    result = ledger("tail", directory, "-n", 3)
    lines = result.output.splitlines()
    assert [line.split()[0] for line in lines] == ["745", "746", "747"]
    assert "task.complete" in lines[-1]
    assert ledger("tail", directory, "-n", 0).output == ""


def test_tail_gives_lines_of_a_dump_to_machines(directory: Path) -> None:
    dumped = ledger("dump", directory).stdout_bytes.splitlines()
    assert ledger("tail", directory, "-n", 2, "--json").stdout_bytes.splitlines() == dumped[-2:]


def test_tail_follows_what_other_processes_record_until_it_is_interrupted(directory: Path) -> None:
    command = [REDKEY, "ledger", "tail", directory, "-n", "1", "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        assert _sequence(follower.stdout.readline()) == 747
        with SqliteStore(directory) as store:
            open_signing(store).add_signer()
        assert _sequence(follower.stdout.readline()) == 748
        follower.send_signal(signal.SIGINT)
        rest = follower.stdout.read()
    assert (follower.returncode, rest) == (0, b"")


def _sequence(line: bytes) -> int:
    return int(json.loads(line)["hcs"]["sequence_number"])


def test_a_topic_must_be_chosen_where_there_are_several(directory: Path) -> None:
    with Workshop(directory, lane=2) as workshop:
        workshop.furnish()
    result = ledger("tail", directory)
    assert result.exit_code == 2
    assert "--topic" in result.output
    assert ledger("tail", directory, "--topic", workshop.topic).exit_code == 0


# Replay.


def replayed(*arguments: object) -> dict[str, Any]:
    result = ledger("replay", *arguments)
    assert result.exit_code == 0, result.output
    state: dict[str, Any] = json.loads(result.output)
    return state


def test_replay_gives_the_state_that_is_stored(directory: Path, tmp_path: Path) -> None:
    told = replayed(directory)
    assert told["sequence_number"] == 747
    with SqliteStore(directory) as store:
        assert told["digest"] == rows_digest(store, "1.0.1001")
    assert ledger("dump", directory, "--out", tmp_path / "dump.jsonl").exit_code == 0
    assert replayed(tmp_path / "dump.jsonl") == told


@pytest.mark.parametrize("place", [0, 1, 2, 100, 256, 746])
def test_replay_stops_at_any_place(directory: Path, tmp_path: Path, place: int) -> None:
    told = replayed(directory, "--to", place)
    assert told["sequence_number"] == place
    assert told["void"] == 0
    if place:
        assert told["consensus_timestamp"].replace(".", "") == str(records(directory)[place - 1].timestamp)
    assert ledger("dump", directory, "--out", tmp_path / "dump.jsonl").exit_code == 0
    assert replayed(tmp_path / "dump.jsonl", "--to", place) == told


def test_a_task_is_seen_in_each_of_its_states(directory: Path) -> None:
    first = next(one.sequence for one in records(directory) if b'"task.created"' in one.wire)
    (task,) = replayed(directory, "--to", first)["state"]["task"].values()
    assert task["state"] == "created"
    final = replayed(directory)["state"]["task"][task["task_id"]]
    assert final["state"] == "completed"


def test_a_place_beyond_the_end_is_a_wrong_use(directory: Path) -> None:
    result = ledger("replay", directory, "--to", 9999)
    assert result.exit_code == 2
    assert "ends at 747" in result.output


def test_an_empty_dump_has_no_state(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert ledger("replay", tmp_path / "empty.jsonl").exit_code == 2


# Export.


def test_exported_pages_are_those_of_a_mirror_node(directory: Path, tmp_path: Path) -> None:
    result = ledger("export", "--mirror", directory, tmp_path / "pages")
    assert result.exit_code == 0, result.output
    pages = sorted((tmp_path / "pages").iterdir())
    assert len(pages) == 8
    first, last = json.loads(pages[0].read_bytes()), json.loads(pages[-1].read_bytes())
    end = first["messages"][-1]
    assert first["links"]["next"] == f"/api/v1/topics/1.0.1001/messages?timestamp=gt:{end['consensus_timestamp']}"
    assert (len(first["messages"]), end["sequence_number"]) == (100, 100)
    assert (len(last["messages"]), last["links"]["next"]) == (47, None)
    verified = redkey("hcs", "verify", *pages)
    assert verified.exit_code == 0
    assert "747 verified, 0 unchecked, 0 bad" in verified.output


def test_a_full_last_page_is_followed_by_an_empty_one(directory: Path, tmp_path: Path) -> None:
    sql(directory, "DELETE FROM record WHERE position > ?", BASE + 200)
    assert ledger("export", "--mirror", directory, tmp_path / "pages.jsonl").exit_code == 0
    lines = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_bytes().splitlines()]
    assert [len(page["messages"]) for page in lines] == [100, 100, 0]
    assert lines[-1] == {"links": {"next": None}, "messages": []}
    assert redkey("hcs", "verify", tmp_path / "pages.jsonl").exit_code == 0


def test_an_export_overwrites_nothing(directory: Path, tmp_path: Path) -> None:
    assert ledger("export", "--mirror", directory, tmp_path / "pages").exit_code == 0
    assert ledger("export", "--mirror", directory, tmp_path / "pages").exit_code == 1
    assert ledger("export", "--mirror", directory, tmp_path / "pages.jsonl").exit_code == 0
    assert ledger("export", "--mirror", directory, tmp_path / "pages.jsonl").exit_code == 1
    assert ledger("export", directory, tmp_path / "other").exit_code == 2
