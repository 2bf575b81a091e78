"""Checkpoints on a public topic: each recorded once, through faults and crashes, and none falsely called anchored."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import msgspec
import pytest
from hiero_sdk_python import PrivateKey
from hiero_sdk_python.consensus.topic_delete_transaction import TopicDeleteTransaction
from hiero_sdk_python.consensus.topic_id import TopicId

from redkey.commands.decision import Refused
from redkey.commands.registry import GrantCredits
from redkey.errors import NetworkAway, NetworkRefused, RedKeyError
from redkey.hedera.network import Operator, Terms
from redkey.hedera.standin.faults import Faults
from redkey.hedera.standin.server import StandIn
from redkey.ledger.anchor import anchored_checkpoint
from redkey.ledger.fees import HBAR, USD, Price, submit_price
from redkey.ledger.mirror import mirror_row, parse_row
from redkey.ledger.verify import Policy, verify_receipt
from redkey.services.anchors import newest_anchor, pending_anchor
from redkey.services.network_fees import FeeBook, FeeLimits, read_book
from redkey.wire.decode import decode
from tests.harness.anchors import AnchorBench, Killed
from tests.harness.hedera import create_topic
from tests.harness.workshop import checked

FAULTED = ("lose_request", "lose_answer", "busy", "duplicate", "no_balance", "delay", "lose_receipt")
MIRROR_FAULTS = ("repeat", "skip", "change_byte", "lag", "mirror_down")
PLACES = [f"{when} {call}" for call in ("act", "price", "submit", "find") for when in ("before", "after")]


def run(standin: StandIn, directory: Path, test, **options):
    """Run a test with a bench."""

    async def whole():
        bench = AnchorBench(standin, directory / "data", **options)
        try:
            return await test(bench)
        finally:
            await bench.close()

    return asyncio.run(whole())


def events(bench: AnchorBench) -> list[dict]:
    """The payloads of the `checkpoint.anchored` records."""
    wires = [decode(record.wire) for record in bench.store.read(bench.local, 0, 10**6)]
    return [wire["payload"] for wire in wires if wire["type"] == "checkpoint.anchored"]


def check_exactly_once(bench: AnchorBench, anchors: int) -> None:
    """Hold what the store says against the network: the same checkpoints, each once, in order."""
    sizes = [anchored_checkpoint(message).size for message in bench.on_network()]
    assert sizes == sorted(set(sizes)), "a checkpoint was recorded twice"
    told = events(bench)
    assert [one["tree_size"] for one in told] == sizes
    assert [one["sequence_number"] for one in told] == list(range(1, len(sizes) + 1))
    assert len(sizes) == anchors
    for message in bench.on_network():
        checkpoint = anchored_checkpoint(message)
        assert checkpoint.root == bench.store.tree(bench.local).root(checkpoint.size)


def test_a_checkpoint_is_anchored_and_its_receipt_verifies_offline(standin, tmp_path):
    async def test(bench: AnchorBench) -> None:
        await bench.record()
        assert bench.receipt()["levels"]["anchored"] is False
        await bench.anchor()
        check_exactly_once(bench, 1)
        receipt = bench.receipt()
        assert receipt["levels"]["anchored"] is True
        rows = tuple(parse_row(row) for row in bench.network.mirror.messages(bench.topic))
        data = msgspec.json.encode(receipt)
        began = time.process_time()
        verdict = verify_receipt(data, Policy(mirror=rows))
        assert time.process_time() - began < 0.5
        assert verdict.levels["anchored"].holds, verdict.levels["anchored"].why
        assert verdict.levels["integrity"].holds
        assert not verify_receipt(data, Policy()).levels["anchored"].holds, "rows of a receipt alone prove nothing"
        forged = msgspec.structs.replace(rows[0], message=b"x" + rows[0].message[1:])
        assert not verify_receipt(data, Policy(mirror=(forged,))).levels["anchored"].holds

    run(standin, tmp_path, test)
    found = checked(tmp_path / "data")
    assert found.clean, found.faults


def test_what_is_anchored_without_news_is_not_anchored_again(standin, tmp_path):
    async def test(bench: AnchorBench) -> None:
        await bench.record()
        await bench.anchor()
        await bench.office.coordinator.act(bench.local, lambda unit: bench.signing.sign_in(unit, bench.local))
        assert await bench.anchoring.step(bench.local) is None
        assert len(bench.on_network()) == 1, "the record of the anchor needs no anchor of its own"
        await bench.record()
        await bench.anchor()
        check_exactly_once(bench, 2)

    run(standin, tmp_path, test)


def test_a_record_that_comes_while_an_anchor_is_on_its_way_is_anchored_too(standin, tmp_path):
    async def test(bench: AnchorBench) -> None:
        await bench.record()
        # The message is sent, and the process dies before it records that. One more record is signed before it does.
        bench.kill_in = {"after submit": 0}
        with pytest.raises(Killed):
            await bench.anchoring.step(bench.local)
        bench.restart()
        await bench.office.do(GrantCredits(1, "credit"))
        await bench.office.coordinator.act(bench.local, lambda unit: bench.signing.sign_in(unit, bench.local))
        size = bench.newest_size()
        await bench.anchoring.step(bench.local)
        assert bench.anchored_size == size - 1
        await bench.anchor()
        assert bench.anchored_size == size
        check_exactly_once(bench, 2)

    run(standin, tmp_path, test)


@pytest.mark.parametrize("place", PLACES)
def test_a_server_that_is_killed_at_any_point_loses_no_anchor_and_repeats_none(standin, tmp_path, place):
    async def test(bench: AnchorBench) -> None:
        for skipped in range(2):
            await bench.record()
            bench.kill_in = {place: skipped}
            await bench.anchor()
            bench.kill_in = {}
        check_exactly_once(bench, 2)

    run(standin, tmp_path, test)


def test_two_servers_at_once_record_each_checkpoint_once(standin, tmp_path):
    async def test(bench: AnchorBench) -> None:
        first = bench.anchoring
        bench.restart()
        for _ in range(3):
            await bench.record()
            wanted = bench.newest_size()
            while bench.anchored_size < wanted:
                steps = (first.step(bench.local), bench.anchoring.step(bench.local))
                await asyncio.gather(*steps, return_exceptions=True)
        check_exactly_once(bench, 3)

    run(standin, tmp_path, test)


def _through_faults(tmp_path: Path, anchors: int, rate: float) -> Faults:
    """Anchor many checkpoints with every fault, and a restart now and then; return which faults happened."""
    faults = Faults(seed=3, delay_seconds=0.02, lag_seconds=0.02)
    ahead = [0]

    async def test(bench: AnchorBench) -> None:
        for name in (*FAULTED, *MIRROR_FAULTS):
            faults.rate(name, rate)
        for number in range(anchors):
            await bench.record()
            if number % 7 == 0:
                bench.kill_in = {PLACES[number // 7 % len(PLACES)]: 0}
            assert not _is_anchored(bench), "nothing is sent yet"
            await _anchored(bench, ahead)
            assert bench.anchored_size == bench.newest_size()
            assert _is_anchored(bench)
        faults.clear()
        check_exactly_once(bench, anchors)
        book = read_book(bench.store, bench.local)
        paid = sum(one.fee for one in bench.standin.state.history if one.entity == bench.topic and one.message)
        assert (book.messages, book.tinybars, book.reserved) == (anchors, paid, 0)

    with StandIn(faults=faults, nodes=2, clock=lambda: time.time_ns() + ahead[0]) as standin:
        run(standin, tmp_path, test)
    return faults


def _is_anchored(bench: AnchorBench) -> bool:
    """Whether the receipt of the newest signed record says that it is anchored: then the network has it."""
    size = bench.newest_size()
    says = bool(bench.receipt(size)["levels"]["anchored"])
    if says:
        topic = bench.standin.state.topics[bench.topic]
        newest = topic.messages[-1].record
        anchored = newest_anchor(bench.store, bench.local)
        assert anchored is not None
        assert parse_row(anchored.rows[-1]) == parse_row(mirror_row(newest)), "the proof is not the network's message"
        shown = anchored_checkpoint(newest.wire)
        assert shown.size == size, "the network has no message that covers the record"
        assert shown.root == bench.store.tree(bench.local).root(size)
    return says


async def _anchored(bench: AnchorBench, ahead: list[int]) -> None:
    """Anchor; when a transaction was lost, let the network's time pass until that is certain."""
    for _ in range(50):
        try:
            await bench.anchor(patience=12)
        except AssertionError:
            _is_anchored(bench)
            # The network's clock and ours move together: the next ids are drawn by the same time.
            await asyncio.sleep(0.03)
            pending = pending_anchor(bench.store, bench.local)
            if pending is not None:
                ahead[0] += 140 * 10**9
                bench.network.ids._clock = lambda: time.time_ns() + ahead[0]
        else:
            return
    raise AssertionError("not anchored")


def test_checkpoints_are_recorded_exactly_once_through_every_fault(tmp_path):
    anchors = 10_000 if os.environ.get("REDKEY_TEST_LONG") else 12
    faults = _through_faults(tmp_path, anchors, 0.1)
    # A fault that never happens would prove nothing.
    assert faults.happened.total() > 5, faults.happened
    if anchors > 1000:
        assert all(faults.happened[name] for name in (*FAULTED, *MIRROR_FAULTS)), faults.happened


# Bad input.


def _refusal(standin, tmp_path, prepare) -> RedKeyError:
    """What a step raises after `prepare`."""

    async def test(bench: AnchorBench):
        await bench.record()
        prepare(bench)
        with pytest.raises((NetworkRefused, NetworkAway, Refused)) as refused:
            await bench.anchoring.step(bench.local)
        assert bench.anchored_size == 0
        assert events(bench) == []
        assert bench.receipt()["levels"]["anchored"] is False
        return refused.value

    return run(standin, tmp_path, test)


def test_a_wrong_key_is_named(standin, tmp_path):
    def prepare(bench):
        key = PrivateKey.generate_ed25519()
        bench.restart(operator=Operator(bench.operator.account, key))

    found = _refusal(standin, tmp_path, prepare)
    assert found.code == "key_wrong"
    assert "hedera.key_file" in found.message


def test_a_topic_that_does_not_exist_is_named_before_anything_is_paid(standin, tmp_path):
    found = _refusal(standin, tmp_path, lambda bench: bench.restart(topic="0.0.424242"))
    assert found.code == "topic_unknown"
    assert "hedera.topic" in found.message


def test_a_deleted_topic_is_named_before_anything_is_paid(standin, tmp_path):
    def prepare(bench):
        name = bench.network.ids.draw()
        bench.network.send(TopicDeleteTransaction(TopicId.from_string(bench.topic)), name, Terms(5 * HBAR))
        assert bench.network.wait(name).state == "recorded"

    assert _refusal(standin, tmp_path, prepare).code == "topic_unknown"


def test_a_foreign_topic_is_named_before_anything_is_paid(standin, tmp_path):
    def prepare(bench):
        bench.restart(topic=create_topic(bench.network, PrivateKey.generate_ed25519(), sign=True))

    assert _refusal(standin, tmp_path, prepare).code == "topic_foreign"


def test_a_mirror_that_is_down_is_named_and_nothing_is_sent(standin, faults, tmp_path):
    found = _refusal(standin, tmp_path, lambda bench: faults.rate("mirror_down", 1.0))
    assert found.code == "mirror_unusable"


@pytest.mark.parametrize("offset", [3600, -3600])
def test_a_clock_that_is_wrong_by_an_hour_is_named(standin, tmp_path, offset):
    def prepare(bench):
        bench.restart(operator=bench.operator)
        bench.post._network.ids._clock = lambda: time.time_ns() + offset * 10**9

    assert _refusal(standin, tmp_path, prepare).code == ("clock_ahead" if offset > 0 else "transaction_expired")


def test_an_account_without_balance_is_refused_with_402_and_anchored_once_it_is_funded(standin, tmp_path):
    async def test(bench: AnchorBench) -> None:
        await bench.record()
        account = bench.standin.state.accounts[bench.operator.account]
        kept, account.balance = account.balance, 5
        with pytest.raises(Refused) as refused:
            await bench.anchoring.step(bench.local)
        assert (refused.value.status, refused.value.code) == (402, "network_balance_empty")
        account.balance = kept
        await bench.anchor()
        check_exactly_once(bench, 1)

    run(standin, tmp_path, test)


# Fees.


def test_a_fee_is_reserved_before_and_booked_from_the_record(standin, tmp_path):
    async def test(bench: AnchorBench) -> None:
        for _ in range(3):
            await bench.record()
            await bench.anchor()
        book = read_book(bench.store, bench.local)
        rate = bench.standin.state.rate
        expected = [rate.tinybars(submit_price(len(message))) for message in bench.on_network()]
        assert (book.messages, book.tinybars, book.reserved) == (3, sum(expected), 0)
        known = sum(submit_price(len(message)) for message in bench.on_network())
        assert abs(book.tinycents - known) <= known // 100

    run(standin, tmp_path, test)


def test_a_budget_that_is_used_up_stops_anchors_and_keeps_the_checkpoint(standin, tmp_path):
    async def test(bench: AnchorBench) -> None:
        await bench.record()
        with pytest.raises(Refused) as refused:
            await bench.anchoring.step(bench.local)
        assert (refused.value.status, refused.value.code) == (402, "network_budget_exhausted")
        assert bench.on_network() == []
        assert read_book(bench.store, bench.local).reserved == 0
        bench.limits = FeeLimits(USD, USD)
        bench.restart()
        await bench.anchor()
        check_exactly_once(bench, 1)

    run(standin, tmp_path, test, limits=FeeLimits(1000, USD))


def test_hours_and_days_have_limits_of_their_own_and_a_clock_that_steps_back_frees_none():
    hour = 3600 * 10**9
    limits, price = FeeLimits(100, 250), Price(1, 60)
    book = FeeBook().reserve(price, limits, hour).paid(price, price, hour)
    with pytest.raises(Refused):
        book.reserve(price, limits, hour + 1)
    with pytest.raises(Refused):
        book.reserve(price, limits, 0)
    for number in range(2, 5):
        book = book.reserve(price, limits, number * hour).paid(price, price, number * hour)
    with pytest.raises(Refused) as refused:
        book.reserve(price, limits, 5 * hour)
    assert "day" in refused.value.message
    assert book.reserve(price, limits, 24 * hour).day_tinycents == 0


def test_no_secret_reaches_the_store(standin, tmp_path):
    async def test(bench: AnchorBench) -> str:
        await bench.record()
        await bench.anchor()
        assert newest_anchor(bench.store, bench.local) is not None
        return bench.operator.key.to_string_raw()

    secret = run(standin, tmp_path, test)
    for file in (tmp_path / "data").rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert secret.encode() not in data
            assert bytes.fromhex(secret) not in data
