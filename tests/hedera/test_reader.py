"""Follow a topic by a mirror that repeats, leaves out, changes and delays messages."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import chain

import pytest

from redkey.errors import NetworkAway, ProofRefused
from redkey.hedera.mirror import Mirror
from redkey.hedera.network import Terms
from redkey.hedera.reader import TopicReader
from redkey.hedera.stream import Waker
from redkey.ledger.fees import HBAR
from redkey.ledger.record import Head


@pytest.fixture
def filled(network, standin, topic) -> str:
    """A topic with 250 messages."""
    state = standin.state
    with state.changed:
        for number in range(250):
            state.append(topic, network.operator.account, 1_700_000_000_000_000_000 + number, f"{number}".encode())
    return topic


def reader(network, topic, **options) -> TopicReader:
    return TopicReader(network.mirror, topic, sleep=lambda _: None, **options)


def test_all_messages_come_once_in_order_from_any_place(network, filled):
    whole = [*chain.from_iterable(iter(reader(network, filled).read, []))]
    assert [record.wire for record in whole] == [f"{number}".encode() for number in range(250)]
    last = whole[199]
    part = reader(network, filled, head=Head(last.sequence, last.timestamp, last.running_hash))
    assert part.read() == whole[200:]
    assert reader(network, filled, head=part.head).read() == []


def test_a_mirror_with_every_fault_gives_the_same_messages(network, faults, filled):
    for name in ("repeat", "skip", "change_byte"):
        faults.rate(name, 0.02)
    following = reader(network, filled)
    came: list[bytes] = []
    while len(came) < 250:
        came += [record.wire for record in following.read()]
    assert came == [f"{number}".encode() for number in range(250)]
    assert following.noticed["repeated"]
    assert following.noticed["gap"]
    assert following.noticed["changed"]


@pytest.mark.parametrize(("fault", "code"), [("skip", "mirror_gap"), ("change_byte", "mirror_changed")])
def test_a_mirror_that_insists_on_a_wrong_row_is_named_and_nothing_after_it_is_read(
    network, standin, faults, filled, fault, code
):
    following = reader(network, filled)
    first = following.read(10)
    if fault == "skip":
        del standin.state.topics[filled].messages[10]
    else:
        faults.rate(fault, 1.0)
    with pytest.raises(ProofRefused) as refused:
        following.read()
    assert refused.value.code == code
    assert filled in refused.value.message
    assert following.head.sequence == first[-1].sequence == 10


def test_a_mirror_that_is_down_is_an_error_with_the_next_step(network, faults, filled):
    faults.queue("mirror_down")
    with pytest.raises(NetworkAway) as away:
        reader(network, filled).read()
    assert away.value.code == "mirror_unusable"
    nowhere = Mirror("http://127.0.0.1:1")
    with pytest.raises(NetworkAway) as away:
        TopicReader(nowhere, filled).read()
    assert away.value.code == "mirror_unreachable"
    assert "hedera.mirror_url" in away.value.message


def test_followers_are_woken_by_the_stream_and_read_by_rest(network, standin, faults, topic):
    stop, wake = threading.Event(), threading.Event()
    waker = Waker(standin.mirror, topic, wake.set)
    waker.start()
    following = reader(network, topic)
    came: list[bytes] = []
    done = threading.Event()

    def follow() -> None:
        while not stop.is_set():
            wake.clear()
            with suppress(NetworkAway):
                came.extend(record.wire for record in following.read())
            if len(came) == 20:
                done.set()
            wake.wait(0.5)

    thread = threading.Thread(target=follow)
    thread.start()
    faults.rate("mirror_down", 0.1)
    faults.rate("cut_stream", 0.1)
    try:
        for number in range(20):
            network.submit(topic, f"{number}".encode(), network.ids.draw(), Terms(HBAR))
        assert done.wait(60)
    finally:
        stop.set()
        wake.set()
        thread.join()
        waker.stop()
    assert came == [f"{number}".encode() for number in range(20)]
