"""The address of a store chooses its adapter, and what the address gives is the same store by any name."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.errors import StoreRefused
from redkey.ledger.ports import Entry
from redkey.stores.clock import SystemClock
from redkey.stores.opening import open_memory, open_signing, open_store, store_at


def test_a_path_and_a_url_name_the_same_store(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with open_store(directory) as store:
        topic = store.create_topic()
        with store.write(topic) as unit:
            unit.append(topic, [Entry(b"{}", "wire_1")], 0)
    for address in (str(directory), f"sqlite:{directory}", f"sqlite://{directory}"):
        with open_store(address, create=False) as again:
            assert again.head(topic).sequence == 1
        with store_at(address).inspect() as evidence:
            assert evidence.head(topic).sequence == 1


def test_a_path_is_never_read_as_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store(Path("postgresql:data")):
        assert (tmp_path / "postgresql:data" / "redkey.db").exists()


@pytest.mark.parametrize("address", ["memory:", "oracle:x"])
def test_an_address_without_an_adapter_is_refused_and_creates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    schemes = "use one of postgres, postgresql, sqlite, or the path of a data directory$"
    with pytest.raises(StoreRefused, match=schemes) as refused:
        open_store(address)
    assert refused.value.code == "store_unknown"
    assert not any(tmp_path.iterdir())


def test_a_missing_store_is_created_only_on_request(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused) as refused:
        open_store(tmp_path / "none", create=False)
    assert refused.value.code == "no_store"
    assert not (tmp_path / "none").exists()


def test_signing_keeps_its_keys_with_the_store(tmp_path: Path) -> None:
    with open_store(tmp_path / "data") as store:
        first = [str(one.verifier) for one in open_signing(store).signers]
        assert [path.name for path in (tmp_path / "data" / "keys").glob("*.key")] == ["signer-0001.key"]
    with open_store(tmp_path / "data", create=False) as store:
        assert [str(one.verifier) for one in open_signing(store).signers] == first


def test_reading_a_backup_leaves_no_file_in_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "data") as store:
        store.create_topic()
    backup = tmp_path / "backup"
    store_at(tmp_path / "data").take_backup(backup, "2026-01-01T00:00:00Z", with_keys=False)
    before = sorted(backup.rglob("*"))
    with store_at(backup).inspect() as evidence:
        assert len(evidence.topics()) == 1
    assert sorted(backup.rglob("*")) == before


def test_a_store_in_memory_ends_with_its_object() -> None:
    one, other = open_memory(SystemClock()), open_memory(SystemClock())
    one.create_topic()
    assert len(one.topics()) == 1
    assert other.topics() == []
