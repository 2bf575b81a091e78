"""`redkey fsck`: says what it looked at, names what is wrong, and exits so that scripts can tell."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.services.fsck.check import Fsck
from redkey.stores.sqlite import SqliteStore
from tests.harness.tampering import BASE, sql
from tests.harness.workshop import Workshop, lived_in
from tests.services.test_receipts import Counter

REDKEY = Path(sys.executable).with_name("redkey")


def fsck(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["fsck", *map(str, arguments)])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return lived_in(tmp_path / "data")


def test_a_sound_directory_is_clean(directory: Path) -> None:
    result = fsck(directory)
    assert result.exit_code == 0, result.output
    assert "records 747" in result.output
    assert result.output.endswith("clean\n")


def test_each_damaged_record_is_named_with_its_place(directory: Path) -> None:
    for sequence in (17, 400):
        sql(directory, "UPDATE record SET payer = '1.0.3' WHERE position = ?", BASE + sequence)
    result = fsck(directory)
    assert result.exit_code == 1
    for sequence in (17, 400):
        assert f"topic 1.0.1001 record {sequence} running_hash_wrong: " in result.output
    # A stranger's record is void, so replay names what follows from it as well.
    assert re.search(r"^damaged: .*\brunning_hash_wrong 2\b", result.output, re.MULTILINE)
    assert "redkey restore" in result.output


def test_json_tells_the_same_to_machines(directory: Path) -> None:
    clean = json.loads(fsck(directory, "--json").output)
    assert (clean["clean"], clean["errors"], clean["faults"]) == (True, {}, [])
    assert clean["checked"]["records"] == 747
    sql(directory, "UPDATE record SET payer = '1.0.3' WHERE position = ?", BASE + 17)
    result = fsck(directory, "--json")
    damaged = json.loads(result.output)
    assert result.exit_code == 1
    assert damaged["errors"]["running_hash_wrong"] == 1
    (fault,) = [fault for fault in damaged["faults"] if fault["code"] == "running_hash_wrong"]
    assert (fault["code"], fault["topic"], fault["sequence"]) == ("running_hash_wrong", "1.0.1001", 17)


def test_what_cannot_be_checked_is_a_wrong_use(tmp_path: Path, directory: Path) -> None:
    for arguments in ((tmp_path / "nowhere",), (tmp_path,), (directory, "--topic", "1.0.9"), (directory, "--key", "x")):
        assert fsck(*arguments).exit_code == 2, arguments
    sql(directory, "PRAGMA user_version = 99")
    newer = fsck(directory)
    assert newer.exit_code == 2
    assert "newer RedKey" in newer.output


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000])
def test_garbage_is_damage(directory: Path, content: bytes) -> None:
    (directory / "redkey.db").write_bytes(content)
    result = fsck(directory)
    assert result.exit_code == 1
    assert "database_damaged" in result.output


def test_one_topic_can_be_chosen(directory: Path) -> None:
    assert "topics 1," in fsck(directory, "--topic", "1.0.1001").output


def test_receipts_show_that_the_tail_was_cut(directory: Path, tmp_path: Path) -> None:
    held = tmp_path / "receipts"
    (held / "deep").mkdir(parents=True)
    with SqliteStore(directory) as store:
        counter = Counter(store)
        (held / "a.json").write_bytes(orjson.dumps(counter.receipt(20)))
        (held / "deep" / "b.json").write_bytes(orjson.dumps(counter.receipt(747)))
    (held / "README").write_text("not a receipt")
    sound = fsck(directory, "--receipts", held)
    assert sound.exit_code == 0, sound.output
    assert "receipts 2" in sound.output
    assert "README" in sound.output
    sql(directory, "DELETE FROM record WHERE position > ?", BASE + 730)
    sql(directory, "DELETE FROM checkpoint WHERE size > 730")
    shutil.rmtree(directory / "checkpoints")
    cut = fsck(directory, "--receipts", held)
    assert cut.exit_code == 1
    assert "receipt_beyond_head" in cut.output
    assert "its tail was cut" in cut.output


def test_a_key_that_is_pinned_must_have_signed(directory: Path, tmp_path: Path) -> None:
    assert fsck(directory, "--key", directory / "keys" / "signer-0001.pub").exit_code == 0
    other = lived_in(tmp_path / "other")
    shutil.rmtree(other / "keys")
    key = (directory / "keys" / "signer-0001.pub").read_text().strip()
    assert fsck(other, "--key", key).exit_code == 0


def test_an_interrupt_ends_cleanly_with_its_own_code(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Fsck, only: object = ()) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Fsck, "run", interrupted)
    result = fsck(directory)
    assert result.exit_code == 130
    assert "nothing was changed" in result.output


def test_progress_is_drawn_on_a_terminal_and_nowhere_else(directory: Path) -> None:
    plain = subprocess.run([REDKEY, "fsck", directory], capture_output=True, check=True)
    assert plain.stderr == b""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    subprocess.run([REDKEY, "fsck", directory], stdout=subprocess.DEVNULL, stderr=theirs, check=True, env=environment)
    os.close(theirs)
    drawn = os.read(ours, 1 << 16)
    os.close(ours)
    assert b"records" in drawn
    assert b"\x1b[" in drawn


def test_text_from_the_files_cannot_steer_the_terminal(directory: Path) -> None:
    sql(directory, "UPDATE row SET key = ? WHERE kind = 'queue'", "queue_\x1b[31mred")
    result = fsck(directory)
    assert result.exit_code == 1
    assert "\x1b[31m" not in result.output


# Checks a directory and tells how many megabytes that took at most.
MEASURED = """
import re, sys
from redkey.cli import main
try:
    main(["fsck", sys.argv[1]])
except SystemExit as ended:
    with open("/proc/self/status") as status:
        print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) // 1024, ended.code)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak this way")
def test_memory_does_not_grow_with_the_history(tmp_path: Path) -> None:
    rounds = 200 if os.environ.get("REDKEY_TEST_LONG") == "1" else 10
    peaks = []
    with Workshop(tmp_path / "data") as workshop:
        workshop.furnish()
        for number in range(rounds):
            workshop.work(256)
            # What has ended leaves the world after a while of ledger time.
            workshop.clock.advance(1000)
            workshop.signing.sign()
            if number in (rounds // 2 - 1, rounds - 1):
                shutil.rmtree(tmp_path / "copy", ignore_errors=True)
                assert CliRunner().invoke(main, ["backup", str(tmp_path / "data"), str(tmp_path / "copy"), "--quick"])
                command = [sys.executable, "-c", MEASURED, str(tmp_path / "copy")]
                *_, last = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
                peak, code = map(int, last.split())
                assert code == 0
                peaks.append(peak)
    assert peaks[1] < peaks[0] + 10, peaks
