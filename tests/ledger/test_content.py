"""Content is named by its hash; documents of the server's making cannot be guessed from it."""

from __future__ import annotations

from hashlib import sha256

import orjson
import pytest

from redkey.errors import ContentRefused
from redkey.ledger.content import body, check, document, ref, structure
from redkey.ledger.ports import Content
from redkey.wire.events import Ref


def test_a_body_is_named_by_its_hash() -> None:
    item = body(b"bytes")
    assert item == Content(sha256(b"bytes").hexdigest(), b"bytes", False)
    assert ref(item) == Ref(bytes=5, sha256=item.sha256)
    check(item)


def test_a_document_carries_its_nonce_in_canonical_json() -> None:
    item = document({"title": "Deploy", "input": {"b": 1, "a": 2}}, bytes(range(16)))
    assert item.data == b'{"input":{"a":2,"b":1},"nonce":"000102030405060708090a0b0c0d0e0f","title":"Deploy"}'
    assert not item.pinned
    check(item)


def test_two_documents_with_the_same_text_have_different_hashes() -> None:
    assert document({"title": "Deploy"}, b"a" * 16).sha256 != document({"title": "Deploy"}, b"b" * 16).sha256


@pytest.mark.parametrize("nonce", [b"", b"a" * 15, b"a" * 17])
def test_a_nonce_has_128_bits(nonce: bytes) -> None:
    with pytest.raises(ContentRefused) as refused:
        document({}, nonce)
    assert refused.value.code == "content_nonce"


def test_a_document_brings_no_nonce_of_its_own() -> None:
    with pytest.raises(ContentRefused) as refused:
        document({"nonce": "mine"}, bytes(16))
    assert refused.value.code == "content_nonce"


def test_structure_is_pinned_and_the_same_everywhere() -> None:
    one, two = structure({"b": 1, "a": []}), structure({"a": [], "b": 1})
    assert one == two
    assert one.pinned
    assert orjson.loads(one.data) == {"a": [], "b": 1}


def test_content_under_another_hash_is_refused() -> None:
    with pytest.raises(ContentRefused) as refused:
        check(Content("0" * 64, b"x"))
    assert refused.value.code == "content_hash"
