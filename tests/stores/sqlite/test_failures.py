"""A disk that is full, slow to sync or broken: nothing is acknowledged that is not durable, nothing half remains."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from redkey.errors import ApiError, RedKeyError, StoreFailed, StoreFull, StorePoisoned, WriterBusy
from redkey.ledger.content import body
from redkey.ledger.ports import Row, Unit
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.failures import translate, translated
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import append, entries, new_topic

LARGE = body(b"l" * 20_000)


def fail_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)


def checkpoint(size: int) -> bytes:
    return b"redkey/log/wk_1/e1\n%d\nroot\n\nsignature\n" % size


def assert_poisoned(store: SqliteStore, topic: str) -> None:
    for call in (
        lambda: store.head(topic),
        lambda: store.read(topic),
        lambda: store.write(topic).__enter__(),
        lambda: store.hold(),
        lambda: store.look(),
        lambda: store.follow(topic),
    ):
        with pytest.raises(StorePoisoned) as poisoned:
            call()
        assert poisoned.value.code == "store_poisoned"


@pytest.mark.parametrize("caught", [False, True])
def test_a_full_disk_fails_the_unit_and_the_store_goes_on_when_there_is_space(tmp_path: Path, caught: bool) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 200)
        connection = store._writer._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 3}")

        def fill() -> None:
            with store.write(topic) as unit:
                unit.append(topic, entries(201, 500), 200)
                unit.put_rows(topic, [Row("task", "t1", b"{}")])
                try:
                    unit.read(topic)
                except StoreFull:
                    # Catching the failure inside the unit does not make the rest of it committable.
                    if not caught:
                        raise

        for _ in range(3):
            with pytest.raises(StoreFull) as full:
                fill()
            assert full.value.code == "store_full"
            assert len(check_topic(store, topic)) == 200
            assert store.row(topic, "task", "t1") is None
        connection.execute("PRAGMA max_page_count = 1000000")
        fill()
        assert len(check_topic(store, topic)) == 700


def test_after_a_full_disk_smaller_units_may_still_fit(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 100)
        connection = store._writer._connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(StoreFull):
            append(store, topic, 500)
        append(store, topic, 2)
        assert len(check_topic(store, topic)) == 102


@pytest.mark.parametrize("work", ["content", "erasure", "checkpoint"])
def test_a_failed_fsync_of_a_file_poisons_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 5)
        with store.write(topic) as unit:
            unit.put_content(topic, [body(b"e")])

        def syncing(unit: Unit) -> None:
            unit.append(topic, entries(6, 1), 5)
            if work == "content":
                unit.put_content(topic, [LARGE])
            elif work == "erasure":
                unit.erase_content(topic, body(b"e").sha256)
            else:
                unit.put_checkpoint(topic, 5, checkpoint(5))

        with monkeypatch.context() as patch:
            fail_fsync(patch)
            with pytest.raises(StorePoisoned), store.write(topic) as unit:
                syncing(unit)
        assert_poisoned(store, topic)
    with SqliteStore(tmp_path) as again:
        assert len(check_topic(again, topic)) == 5
        assert again.content(topic, LARGE.sha256) is None
        assert again.content(topic, body(b"e").sha256) is not None
        assert not again.checkpoints(topic)


def test_a_poisoned_store_can_be_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path)
    topic = new_topic(store)
    with monkeypatch.context() as patch:
        fail_fsync(patch)
        with pytest.raises(StorePoisoned), store.write(topic) as unit:
            unit.put_content(topic, [LARGE])
    store.close()
    SqliteStore(tmp_path).close()


def test_a_write_error_of_the_directory_fails_the_unit_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        real = os.open

        def refuse(path: object, *arguments: object, **options: object) -> int:
            if str(path).endswith(LARGE.sha256):
                raise OSError(errno.EIO, "Input/output error")
            return real(path, *arguments, **options)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refuse)
            with pytest.raises(StoreFailed) as failed, store.write(topic) as unit:
                unit.put_content(topic, [LARGE])
            assert failed.value.code == "store_failed"
        append(store, topic, 1)
        assert len(check_topic(store, topic)) == 1


def test_a_program_that_has_the_file_locked_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redkey.stores.sqlite.connection._BUSY_SECONDS", 0.05)
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        shell = sqlite3.connect(tmp_path / "redkey.db", isolation_level=None)
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(WriterBusy) as busy:
            append(store, topic, 1)
        assert "another program" in busy.value.message
        shell.execute("ROLLBACK")
        shell.close()
        append(store, topic, 1)


def test_a_damaged_page_is_told_as_damage(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        topic = new_topic(store)
        append(store, topic, 500)
    with (tmp_path / "redkey.db").open("r+b") as database:
        # Behind the pages that opening reads.
        for page in range(20, 60):
            database.seek(page * 4096)
            database.write(b"\xff" * 100)
    with SqliteStore(tmp_path) as store, pytest.raises(StoreFailed) as failed:
        store.read(topic)
    assert failed.value.code == "store_damaged"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, StoreFull),
        (sqlite3.SQLITE_IOERR_FSYNC, StorePoisoned),
        (sqlite3.SQLITE_IOERR_DIR_FSYNC, StorePoisoned),
        (sqlite3.SQLITE_IOERR_WRITE, StoreFailed),
        (sqlite3.SQLITE_IOERR_SHMMAP, StoreFailed),
        (sqlite3.SQLITE_BUSY, WriterBusy),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, WriterBusy),
        (sqlite3.SQLITE_CORRUPT_INDEX, StoreFailed),
        (sqlite3.SQLITE_READONLY, StoreFailed),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.IntegrityError),
    ],
)
def test_what_sqlite_says_has_one_meaning(code: int, kind: type[Exception]) -> None:
    error = sqlite3.IntegrityError("sorry")
    error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE_X"
    assert type(translate(error)) is kind


def test_a_block_within_a_block_tells_a_failure_once_and_leaves_our_mistakes_alone() -> None:
    full, mistake = OSError(errno.ENOSPC, "No space left"), sqlite3.ProgrammingError("a mistake of ours")
    with pytest.raises(StoreFull) as told, translated(), translated():
        raise full
    assert told.value.__cause__ is full
    with pytest.raises(sqlite3.ProgrammingError) as same, translated(), translated():
        raise mistake
    assert same.value is mistake
    assert mistake.__cause__ is None


CHILD = """
import json, sys
from redkey.errors import RedKeyError
from redkey.ledger.ports import Entry
from redkey.stores.sqlite import SqliteStore

store = SqliteStore(sys.argv[1])
topic = store.create_topic()
acknowledged, failures = 0, []
print("ready", flush=True)
for number in range(int(sys.argv[2])):
    try:
        with store.write(topic) as unit:
            unit.append(topic, [Entry(b"x" * 1000, f"wire_{number}")] * 8, unit.head(topic).sequence)
            head = unit.head(topic).sequence
    except RedKeyError as failed:
        failures.append(failed.code)
        continue
    acknowledged = head
print(json.dumps({"acknowledged": acknowledged, "failures": failures}), flush=True)
store.close()
"""


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("when", [7, 11])
def test_after_sqlites_own_fsync_has_failed_nothing_more_is_acknowledged(tmp_path: Path, when: int) -> None:
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", str(tmp_path / "redkey.db-wal")]
    inject = ["-e", "trace=fdatasync,fsync", "-e", f"inject=fdatasync,fsync:error=EIO:when={when}"]
    command = [*strace, *inject, sys.executable, "-c", CHILD, str(tmp_path), "12"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=120)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["failures"], "the injected failure was not met"
    assert set(result["failures"]) == {"store_poisoned"}
    with SqliteStore(tmp_path) as store:
        records = check_topic(store, "1.0.1001")
        assert len(records) >= result["acknowledged"]


def unshare() -> list[str]:
    """How to run something with a mount namespace of its own; empty where that is not allowed."""
    for command in (["unshare", "-m"], ["unshare", "-rm"]):
        if shutil.which("unshare"):
            tried = subprocess.run([*command, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
            if tried.returncode == 0:
                return command
    return []


def test_a_real_full_disk_is_told_and_survived(tmp_path: Path) -> None:
    command = unshare()
    if not command:
        pytest.skip("no mount namespaces here")
    (tmp_path / "disk").mkdir()
    # A file takes the space until it is deleted, because mounting needs rights.
    script = (
        'mount -t tmpfs -o size=5m,mode=0700 none "$0" && head -c 4194304 /dev/zero > "$0/ballast" && '
        f'exec {sys.executable} -c "$1" "$0/data" 200'
    )
    done = subprocess.run(
        [*command, "sh", "-c", script, str(tmp_path / "disk"), CHILD + AFTERWARDS],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    lines = done.stdout.splitlines()
    result = json.loads(lines[1])
    assert result["failures"]
    assert set(result["failures"]) == {"store_full"}
    assert result["acknowledged"] > 0
    assert json.loads(lines[2]) == {"head": result["acknowledged"], "after": result["acknowledged"] + 1}


# Inside the namespace: what was acknowledged is all there, and with more space the store goes on.
AFTERWARDS = """
from pathlib import Path
Path(sys.argv[1]).with_name("ballast").unlink()
store = SqliteStore(sys.argv[1])
head = store.head(topic).sequence
with store.write(topic) as unit:
    unit.append(topic, [Entry(b"1", "wire_after")], head)
print(json.dumps({"head": head, "after": store.head(topic).sequence}))
store.close()
"""


def test_every_failure_of_a_store_has_a_code_and_a_sentence() -> None:
    def below(kind: type[RedKeyError]) -> list[type[RedKeyError]]:
        return [kind, *(deeper for child in kind.__subclasses__() for deeper in below(child))]

    kinds = below(RedKeyError)
    for kind in kinds:
        assert kind.code
        assert kind.__doc__
    # What a client raises for an answer bears the code that the server gave.
    own = [kind for kind in kinds if kind.__module__ == "redkey.errors"]
    codes = [kind.code for kind in own if kind is ApiError or not issubclass(kind, ApiError)]
    assert len(codes) == len(set(codes))
