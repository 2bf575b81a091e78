"""Uploads: bodies that come in pieces, kept aside until a unit takes them, and read a piece at a time."""

from __future__ import annotations

from hashlib import sha256

import pytest

from redkey.errors import AppendRefused, StoreMisused
from redkey.ledger.content import body
from redkey.ledger.ports import ContentFacts, SequencedStore, Upload
from tests.conformance.stores.harness import Broken, Maker, new_topic, opened, spoil

SIZES = [0, 1, 16 * 1024, 16 * 1024 + 1, 1_000_000]


def received(store: SequencedStore, data: bytes, piece: int = 7_000) -> Upload:
    upload = store.upload()
    for at in range(0, len(data), piece):
        upload.write(data[at : at + piece])
    assert upload.finish() == upload.sha256 == sha256(data).hexdigest()
    assert upload.size == len(data)
    return upload


class UploadCases:
    @pytest.mark.parametrize("size", SIZES)
    def test_a_body_that_came_in_pieces_is_content_like_any(self, maker: Maker, size: int) -> None:
        item = body((b"0123456789" * (size // 10 + 1))[:size])
        with opened(maker) as store:
            topic = new_topic(store)
            upload = received(store, item.data)
            assert store.content(topic, item.sha256) is None
            with store.write(topic) as unit:
                unit.adopt(topic, upload)
                assert unit.content_facts(topic, item.sha256) == ContentFacts(size, False)
            upload.discard()
            upload.discard()
        store = maker.open()
        assert store.content(topic, item.sha256) == item
        assert store.content_facts(topic, item.sha256) == ContentFacts(size, False)
        assert b"".join(store.content_chunks(topic, item.sha256)) == item.data

    @pytest.mark.parametrize("size", SIZES)
    def test_a_body_that_is_discarded_was_never_there(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        upload = received(store, b"x" * size)
        name = upload.sha256
        upload.discard()
        assert store.content_facts(topic, name) is None
        assert list(store.content_chunks(topic, name)) == []

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_a_unit_that_fails_keeps_no_upload(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        upload = received(store, b"x" * size)
        name = upload.sha256
        with pytest.raises(Broken):
            spoil(store, topic, lambda unit: (unit.adopt(topic, upload), unit.content_facts(topic, name)))
        upload.discard()
        assert store.content(topic, name) is None

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_what_is_not_complete_cannot_be_taken_and_what_is_cannot_grow(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        upload = store.upload()
        upload.write(b"x" * size)
        with store.write(topic) as unit:
            with pytest.raises(StoreMisused) as refused:
                unit.adopt(topic, upload)
            assert refused.value.code == "upload_unfinished"
        upload.finish()
        with pytest.raises(StoreMisused) as refused:
            upload.write(b"more")
        assert refused.value.code == "upload_ended"
        with store.write(topic) as unit:
            unit.adopt(topic, upload)
        assert store.content_facts(topic, sha256(b"x" * size).hexdigest()) == ContentFacts(size, False)
        upload.discard()

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_an_upload_of_what_is_there_changes_nothing(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        item = body(b"x" * size, pinned=True)
        with store.write(topic) as unit:
            unit.put_content(topic, [item])
        upload = received(store, item.data)
        with store.write(topic) as unit:
            unit.adopt(topic, upload)
        upload.discard()
        assert store.content(topic, item.sha256) == item

    def test_a_topic_that_is_not_there_takes_no_upload(self, maker: Maker) -> None:
        store = maker.open()
        upload = received(store, b"x")
        with store.write("1.0.9999") as unit, pytest.raises(AppendRefused) as refused:
            unit.adopt("1.0.9999", upload)
        assert refused.value.code == "topic_unknown"
        upload.discard()

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_an_erased_upload_is_gone(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        upload = received(store, b"x" * size)
        name = upload.sha256
        with store.write(topic) as unit:
            unit.adopt(topic, upload)
        upload.discard()
        reading = store.content_chunks(topic, name)
        with store.write(topic) as unit:
            assert unit.erase_content(topic, name)
        assert store.content_facts(topic, name) is None
        assert list(store.content_chunks(topic, name)) == []
        # Who had begun to read may go on.
        assert b"".join(reading) == b"x" * size
