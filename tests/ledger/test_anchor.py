"""The message that anchors a checkpoint has the HCS-27 shape, fits, and reads back as that checkpoint alone."""

from __future__ import annotations

import orjson
import pytest

from redkey.errors import ProofRefused
from redkey.ledger.anchor import anchor_message, anchored_checkpoint
from redkey.ledger.checkpoint import Checkpoint, origin_of
from redkey.ledger.record import MESSAGE_LIMIT
from tests.harness.small_log import ORIGIN, SmallLog

CHECKPOINT = SmallLog(9).checkpoint()


def test_a_checkpoint_reads_back_from_its_anchor() -> None:
    assert anchored_checkpoint(anchor_message(CHECKPOINT)) == CHECKPOINT
    assert anchored_checkpoint(anchor_message(CHECKPOINT, SmallLog(4).checkpoint())) == CHECKPOINT


def test_the_message_has_the_fields_of_hcs_27() -> None:
    message = orjson.loads(anchor_message(CHECKPOINT, SmallLog(4).checkpoint()))
    assert (message["p"], message["op"]) == ("hcs-27", "register")
    metadata = message["metadata"]
    assert metadata["type"] == "ans-checkpoint-v1"
    assert f"{metadata['stream']['registry']}/{metadata['stream']['log_id']}" == ORIGIN
    assert (metadata["log"]["alg"], metadata["log"]["merkle"]) == ("sha-256", "rfc9162")
    assert (metadata["root"]["treeSize"], metadata["prev"]["treeSize"]) == ("9", "4")
    assert "=" not in metadata["root"]["rootHashB64u"]


def test_the_largest_anchor_fits_in_one_message() -> None:
    largest = Checkpoint(origin_of("z" * 32, "wk_" + "Z" * 26, 999_999), 2**63 - 1, b"\xff" * 32)
    assert len(anchor_message(largest, largest)) <= MESSAGE_LIMIT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"hcs-27"', b'"hcs-26"'),
        (b'"register"', b'"delete"'),
        (b'"sha-256"', b'"sha-1"'),
        (b'"rfc9162"', b'"other"'),
        (b'"treeSize":"9"', b'"treeSize":9'),
        (b'"treeSize":"9"', b'"treeSize":"09"'),
        (b'"treeSize":"9"', b'"size":"9"'),
        (b'"metadata":{', b'"metadata":"hcs://1/0.0.5","x":{'),
        (b'"rootHashB64u":"', b'"rootHashB64u":"A'),
        (b'"rootHashB64u":"', b'"rootHashB64u":"\xc3\xa9'),
        (b'"stream":{', b'"streams":{'),
        (b"{", b""),
    ],
)
def test_what_anchors_nothing_is_refused(old: bytes, new: bytes) -> None:
    message = anchor_message(CHECKPOINT)
    assert old in message
    with pytest.raises(ProofRefused):
        anchored_checkpoint(message.replace(old, new, 1))


@pytest.mark.parametrize("message", [b"", b"[]", b"null", b"hello", b'{"p":"hcs-27"}', bytes(5000)])
def test_other_messages_of_a_topic_anchor_nothing(message: bytes) -> None:
    with pytest.raises(ProofRefused):
        anchored_checkpoint(message)
