"""Content: by topic and hash, erasable unless pinned, and the ledger whole without it."""

from __future__ import annotations

import pytest

from redkey.errors import ContentRefused, StoreMisused
from redkey.ledger.content import body, document, ref, structure
from redkey.ledger.ports import Content, ContentFacts, SequencedStore
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import Broken, Maker, append, new_topic, opened, spoil

SIZES = [0, 1, 16 * 1024 - 1, 16 * 1024, 16 * 1024 + 1, 300_000]


class ContentCases:
    @pytest.mark.parametrize("size", SIZES)
    def test_bodies_of_every_size_come_back_also_after_opening_again(self, maker: Maker, size: int) -> None:
        item = body(bytes(range(256)) * (size // 256) + bytes(range(size % 256)))
        with opened(maker) as store:
            topic = new_topic(store)
            with store.write(topic) as unit:
                unit.put_content(topic, [item])
                assert unit.content(topic, item.sha256) == item
            assert store.content(topic, item.sha256) == item
        assert maker.open().content(topic, item.sha256) == item

    def test_what_is_not_a_hash_names_nothing(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        item = body(b"x")
        with store.write(topic) as unit:
            unit.put_content(topic, [item])
            for name in ("", "zz", item.sha256[:-2], item.sha256.upper(), "../" + item.sha256, "0" * 64):
                assert unit.content(topic, name) is None
                assert unit.erase_content(topic, name) == ""

    def test_content_under_a_wrong_hash_is_refused(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        for name in (body(b"other").sha256, body(b"x").sha256.upper(), "../../etc/passwd"):
            with pytest.raises(ContentRefused) as refused, store.write(topic) as unit:
                unit.put_content(topic, [Content(name, b"x")])
            assert refused.value.code == "content_hash"

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_erased_content_is_gone_and_the_ledger_is_whole(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        item, kept = body(b"e" * size), body(b"k" * size)
        with store.write(topic) as unit:
            unit.put_content(topic, [item, kept])
        append(store, topic, 5)
        with store.write(topic) as unit:
            assert unit.erase_content(topic, item.sha256) == _gone(store)
            assert unit.content(topic, item.sha256) is None
            assert unit.erase_content(topic, item.sha256) == ""
        assert store.content(topic, item.sha256) is None
        assert store.content(topic, kept.sha256) == kept
        check_topic(store, topic)
        with store.write(topic) as unit:
            unit.put_content(topic, [item])
        assert store.content(topic, item.sha256) == item

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_an_erasure_that_is_rolled_back_erases_nothing(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        item = body(b"e" * size)
        with store.write(topic) as unit:
            unit.put_content(topic, [item])
        with pytest.raises(Broken):
            spoil(store, topic, lambda unit: unit.erase_content(topic, item.sha256))
        assert store.content(topic, item.sha256) == item

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_a_body_put_and_erased_in_one_unit_is_gone(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        item = body(b"e" * size)
        with store.write(topic) as unit:
            unit.put_content(topic, [item])
            assert unit.erase_content(topic, item.sha256) == _gone(store)
        assert store.content(topic, item.sha256) is None

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_the_same_bytes_in_two_topics_are_erased_apart(self, maker: Maker, size: int) -> None:
        store = maker.open()
        one, two = new_topic(store), new_topic(store)
        item = body(b"e" * size)
        for topic in (one, two):
            with store.write(topic) as unit:
                unit.put_content(topic, [item])
        with store.write(one) as unit:
            assert unit.erase_content(one, item.sha256) == _gone(store)
        assert store.content(one, item.sha256) is None
        assert store.content(two, item.sha256) == item

    def test_pinned_content_cannot_be_erased(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        plan = structure({"tasks": []})
        with store.write(topic) as unit:
            unit.put_content(topic, [plan])
        with pytest.raises(ContentRefused) as refused, store.write(topic) as unit:
            unit.erase_content(topic, plan.sha256)
        assert refused.value.code == "content_pinned"
        assert store.content(topic, plan.sha256) == plan

    @pytest.mark.parametrize("pinned_first", [True, False])
    def test_content_that_was_pinned_once_stays_so(self, maker: Maker, pinned_first: bool) -> None:
        store = maker.open()
        topic = new_topic(store)
        loose, pinned = body(b"plan"), body(b"plan", pinned=True)
        first, second = (pinned, loose) if pinned_first else (loose, pinned)
        with store.write(topic) as unit:
            unit.put_content(topic, [first])
        with store.write(topic) as unit:
            unit.put_content(topic, [second])
        with pytest.raises(ContentRefused), store.write(topic) as unit:
            unit.erase_content(topic, pinned.sha256)
        other = new_topic(store)
        with store.write(other) as unit:
            unit.put_content(other, [first, second])
        assert store.content(other, pinned.sha256) == pinned

    def test_documents_with_a_nonce_are_content_like_any(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        item = document({"title": "Deploy"}, bytes(16))
        with store.write(topic) as unit:
            unit.put_content(topic, [item])
        found = store.content(topic, ref(item).sha256)
        assert found == item

    @pytest.mark.parametrize("size", SIZES)
    def test_what_is_uploaded_in_pieces_is_content_like_any(self, maker: Maker, size: int) -> None:
        item = body(bytes(range(256)) * (size // 256) + bytes(range(size % 256)))
        with opened(maker) as store:
            topic = new_topic(store)
            upload = store.upload()
            for start in range(0, size, 1000):
                upload.write(item.data[start : start + 1000])
            assert (upload.finish(), upload.size) == (item.sha256, size)
            with pytest.raises(StoreMisused):
                upload.write(b"more")
            with store.write(topic) as unit:
                unit.adopt(topic, upload)
                assert unit.content_facts(topic, item.sha256) == ContentFacts(size, False)
            upload.discard()
            upload.discard()
        store = maker.open()
        assert store.content(topic, item.sha256) == item
        assert b"".join(store.content_chunks(topic, item.sha256)) == item.data

    @pytest.mark.parametrize("size", [10, 100_000])
    def test_an_upload_whose_unit_fails_leaves_nothing(self, maker: Maker, size: int) -> None:
        store = maker.open()
        topic = new_topic(store)
        upload = store.upload()
        upload.write(b"x" * size)
        sha256 = upload.finish()
        with pytest.raises(Broken):
            spoil(store, topic, lambda unit: unit.adopt(topic, upload))
        upload.discard()
        assert store.content_facts(topic, sha256) is None
        assert list(store.content_chunks(topic, sha256)) == []

    def test_an_upload_of_what_is_there_changes_nothing(self, maker: Maker) -> None:
        store = maker.open()
        topic = new_topic(store)
        item = Content(body(b"y" * 50_000).sha256, b"y" * 50_000, pinned=True)
        with store.write(topic) as unit:
            unit.put_content(topic, [item])
        upload = store.upload()
        upload.write(item.data)
        upload.finish()
        with store.write(topic) as unit:
            unit.adopt(topic, upload)
        upload.discard()
        assert store.content(topic, item.sha256) == item


def _gone(store: SequencedStore) -> str:
    """When erased bytes are gone from the files of a store: a database across a network cleans up later."""
    return "later" if store.engine.startswith("PostgreSQL") else "now"
