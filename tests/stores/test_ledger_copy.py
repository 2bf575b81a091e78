"""`redkey ledger copy` and the commands that work on stores: the same on a data directory and on a database."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64encode
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.errors import CopyRefused, StoreRefused
from redkey.ledger.ports import Content
from redkey.services.log_facts import BUS_HOST
from redkey.stores.ledger_copying import copy_ledger
from redkey.stores.opening import open_signing, open_store, store_at
from tests.first_version.archive import unpacked

KEY = b64encode(bytes(range(32))).decode()


@pytest.fixture(autouse=True)
def _sealing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDKEY_STORE_KEY", KEY)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A data directory that the first version wrote, with every event type, and receipts beside it."""
    return unpacked(tmp_path)


def _run(*arguments: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(main, list(map(str, arguments)), prog_name="redkey")
    assert done.exit_code == code, (done.output, done.exception)
    return done


def _copied(result: Result) -> dict[str, object]:
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_a_ledger_goes_to_postgresql_and_back_and_receipts_stay_valid(
    old: Path, postgres_url: str, tmp_path: Path
) -> None:
    with open_store(old / "data", create=False) as opened, opened.write_store() as unit:
        # The host of the bus is a server of this store; another store's servers would refer their callers to it.
        unit.put_setting(BUS_HOST, "a server of the old store")
    there = _copied(_run("ledger", "copy", old / "data", postgres_url, "--json"))
    with open_store(postgres_url, create=False) as opened:
        assert opened.setting(BUS_HOST) is None
    back = _copied(_run("ledger", "copy", postgres_url, tmp_path / "back", "--json"))
    assert there["verified"] is back["verified"] is True
    assert there["records"] == back["records"]
    assert int(str(there["records"])) > 100
    assert there["rows"] == back["rows"]
    for store in (postgres_url, tmp_path / "back"):
        report = _copied(_run("fsck", store, "--receipts", old / "receipts", "--json"))
        assert report["clean"] is True
        with open_store(store, create=False) as opened:
            # The same keys sign: a new one would be another log to everyone who pinned the first.
            names = [str(one.verifier) for one in open_signing(opened).signers]
        with open_store(old / "data", create=False) as opened:
            assert names == [str(one.verifier) for one in open_signing(opened).signers]


def test_a_copy_that_was_killed_continues_where_it_was(old: Path, postgres_url: str, tmp_path: Path) -> None:
    data, records = _long(old / "data"), 0
    command = [sys.executable, "-m", "redkey", "ledger", "copy", str(data), postgres_url]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    # Killed when some of the records are there, and not all.
    while not records and process.poll() is None:
        assert time.monotonic() < deadline
        records = _records(postgres_url)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with pytest.raises(StoreRefused, match="unfinished copy"), open_store(postgres_url, create=False) as store:
        open_signing(store)
    assert "copy_unfinished" in _run("fsck", postgres_url, "--json", code=1).stdout
    done = _copied(_run("ledger", "copy", data, postgres_url, "--json"))
    assert int(str(done["records_before"])) >= records > 0
    assert _copied(_run("fsck", postgres_url, "--json"))["clean"] is True


def _long(data: Path, records: int = 4000) -> Path:
    """Make a topic longer than one unit of a copy: the same request is refused again and again, on the record."""
    from redkey.commands.actor import Actor
    from redkey.commands.registry import CreateQueue
    from redkey.readmodel.world_loading import load_world
    from redkey.services.unit_of_work import TopicWork
    from redkey.stores.ids import SystemIds

    with open_store(data) as store:
        topic = store.topics()[0]
        world = load_world(store, topic)
        admin = Actor(world.workspace.workspace_id, "key_" + "0" * 26, frozenset({"admin"}))
        ids = SystemIds()
        for _ in range(records // 1000):
            with store.write(topic) as unit:
                work = TopicWork(unit, topic, world, ids)
                for _ in range(1000):
                    work.note(work.judge(CreateQueue("queue_" + ids.ulid().lower(), {}), admin).drafts)
                work.finish()
    return data


def _records(url: str) -> int:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT to_regclass('redkey.topic') IS NOT NULL").fetchone()[0]:  # type: ignore[index]
            return 0
        return int(connection.execute("SELECT coalesce(sum(sequence), 0) FROM redkey.topic").fetchone()[0])  # type: ignore[index]


def test_a_target_with_another_ledger_is_refused_and_stays_as_it_is(
    old: Path, postgres_url: str, tmp_path: Path
) -> None:
    with open_store(tmp_path / "other") as store:
        open_signing(store)
    refused = _run("ledger", "copy", old / "data", tmp_path / "other", code=1)
    assert "store_not_empty" in refused.output or "has a ledger already" in refused.output
    assert _copied(_run("fsck", tmp_path / "other", "--json"))["clean"] is True
    open_store(tmp_path / "empty").close()
    with pytest.raises(CopyRefused) as empty:
        copy_ledger(store_at(tmp_path / "empty"), store_at(postgres_url))
    assert empty.value.code == "copy_source_empty"


def test_a_difference_is_found_and_keeps_the_copy_closed(old: Path, postgres_url: str) -> None:
    class Tampered(type(store_at(postgres_url))):  # type: ignore[misc]
        def inspect(self) -> object:
            import psycopg

            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute("UPDATE redkey.row SET position = position + 1 WHERE kind = 'task'")
            return super().inspect()

    with pytest.raises(CopyRefused, match="row task") as refused:
        copy_ledger(store_at(old / "data"), Tampered(postgres_url))
    assert refused.value.code == "copy_differs"
    with pytest.raises(StoreRefused, match="unfinished copy"), open_store(postgres_url, create=False) as store:
        open_signing(store)
    # The same command puts right what a run has left.
    copy_ledger(store_at(old / "data"), store_at(postgres_url))


def test_large_and_pinned_and_erased_content_is_copied_as_it_is(old: Path, postgres_url: str, tmp_path: Path) -> None:
    large = os.urandom(3 * 1024 * 1024)
    with open_store(old / "data") as store:
        topic = store.topics()[0]
        upload = store.upload()
        upload.write(large)
        name = upload.finish()
        with store.write(topic) as unit:
            unit.adopt(topic, upload)
        upload.discard()
        with store.write(topic) as unit:
            unit.put_content(topic, [Content(_sha256(b"pinned"), b"pinned", pinned=True)])
            unit.put_content(topic, [Content(_sha256(b"erased"), b"erased")])
        with store.write(topic) as unit:
            unit.erase_content(topic, _sha256(b"erased"))
    copy_ledger(store_at(old / "data"), store_at(postgres_url))
    copy_ledger(store_at(postgres_url), store_at(tmp_path / "back"))
    for address in (postgres_url, tmp_path / "back"):
        with open_store(address, create=False) as store:
            assert b"".join(store.content_chunks(topic, name)) == large
            facts = store.content_facts(topic, _sha256(b"pinned"))
            assert facts is not None
            assert facts.pinned
            assert store.content(topic, _sha256(b"erased")) is None


def _sha256(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()


def test_every_command_on_stores_takes_the_url_of_a_database(old: Path, postgres_url: str, tmp_path: Path) -> None:
    _run("ledger", "copy", old / "data", postgres_url)
    with open_store(postgres_url, create=False) as store:
        topic = store.topics()[0]
        last = store.read(topic, store.head(topic).sequence - 1)[0]
    wire_id = json.loads(last.wire)["wire_id"]
    assert _run("ledger", "dump", postgres_url).stdout == _run("ledger", "dump", old / "data").stdout
    one = ("--topic", topic)
    assert _run("ledger", "tail", postgres_url, *one).stdout == _run("ledger", "tail", old / "data", *one).stdout
    assert _run("ledger", "replay", postgres_url, *one).stdout == _run("ledger", "replay", old / "data", *one).stdout
    _run("ledger", "export", "--mirror", postgres_url, tmp_path / "pages.jsonl", *one)
    assert _run("usage", "reconcile", "--store", postgres_url).output.count("0 differences") >= 1
    keys = _run("signer", "list", postgres_url).output
    (tmp_path / "log.pub").write_text("".join(line for line in keys.splitlines(True) if "+" in line))
    _run("receipt", "export", postgres_url, wire_id, "--out", tmp_path / "receipt.json")
    _run("signer", "rotate", postgres_url)
    assert "rk_" in _run("key", "recover", postgres_url).output
    _run("backup", postgres_url, tmp_path / "backup", "--with-keys")
    assert _copied(_run("fsck", tmp_path / "backup", "--receipts", old / "receipts", "--json"))["clean"] is True


def test_a_backup_of_a_database_is_restored_to_a_database_in_a_new_epoch(
    old: Path, postgres_url: str, tmp_path: Path
) -> None:
    from tests.harness.postgres import database

    _run("ledger", "copy", old / "data", postgres_url)
    _run("backup", postgres_url, tmp_path / "backup", "--with-keys")
    with open_store(postgres_url, create=False) as store:
        epoch = int(store.setting("epoch") or 0)
    with database() as other:
        _run("restore", tmp_path / "backup", other)
        report = _copied(_run("fsck", other, "--receipts", old / "receipts", "--json"))
        assert report["clean"] is True
        with open_store(other, create=False) as store:
            assert store.setting("epoch") == str(epoch + 1)
        assert "has a ledger already" in _run("restore", tmp_path / "backup", other, code=1).output


def test_passwords_of_urls_are_not_printed(old: Path) -> None:
    done = _run("ledger", "copy", old / "data", "postgresql://quinn:hunter2@127.0.0.1:1/x", code=1)
    assert "hunter2" not in done.output
