"""The wrapper of the SDK: what the SDK's own client does wrong, and that the wrapper does not."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest
from hiero_sdk_python import PrivateKey, TopicMessageQuery, TopicMessageSubmitTransaction
from hiero_sdk_python.account.account_id import AccountId
from hiero_sdk_python.consensus.topic_id import TopicId
from hiero_sdk_python.exceptions import PrecheckError
from hiero_sdk_python.transaction.transaction_id import TransactionId

from redkey.errors import ConfigRefused, NetworkAway, NetworkRefused
from redkey.hedera.ids import TransactionIds, valid_start
from redkey.hedera.network import Addresses, Network, Operator, Terms
from redkey.hedera.opening import read_key
from redkey.hedera.prices import FeeTerms, TopicPrices
from redkey.hedera.reader import TopicReader
from redkey.hedera.standin.server import StandIn
from redkey.hedera.stream import Waker
from redkey.ledger.fees import HBAR, USD, submit_price
from tests.harness.hedera import addresses_of, create_topic, sdk_client


def submit(network, topic, message=b"hello", **options):
    """Submit a message; return its transaction id."""
    name = network.ids.draw()
    network.submit(topic, message, name, Terms(HBAR, **options))
    return name


def recorded(standin: StandIn, topic: str) -> list[bytes]:
    return [message.record.wire for message in standin.state.topics[topic].messages]


def test_a_message_is_recorded_and_its_receipt_found(standin, network, topic):
    found = network.wait(submit(network, topic))
    assert (found.state, found.sequence) == ("recorded", 1)
    assert found.running_hash == standin.state.topics[topic].head.running_hash


# Hazard 1: a lost answer.


def test_the_sdk_reports_a_recorded_message_as_failed_after_a_lost_answer(faults, network, topic, operator):
    with StandIn(faults=faults) as one_node:
        client = sdk_client(one_node, Operator(*one_node.open_account()))
        with_one = Network(
            addresses_of(one_node), Operator(client.operator_account_id.__str__(), client.operator_private_key)
        )
        alone = create_topic(with_one, client.operator_private_key)
        faults.queue("lose_answer", 10)
        with pytest.raises(RuntimeError, match="unhealthy"):
            TopicMessageSubmitTransaction(TopicId.from_string(alone), "lost").execute(client)
        assert recorded(one_node, alone) == [b"lost"]
        faults.clear()
        faults.queue("lose_answer")
        name = with_one.ids.draw()
        with pytest.raises(NetworkAway) as away:
            with_one.submit(alone, b"kept", name, Terms(HBAR))
        assert away.value.code == "submission_in_doubt"
        assert with_one.wait(name).state == "recorded", "the wrapper finds it by its own id"
        assert recorded(one_node, alone) == [b"lost", b"kept"]
        with_one.close()


# Hazard 2: our own id is a duplicate.


def test_the_sdk_fails_on_its_own_duplicate_and_the_wrapper_takes_it_for_sent(standin, client, faults, network, topic):
    faults.queue("duplicate")
    with pytest.raises(PrecheckError):
        TopicMessageSubmitTransaction(TopicId.from_string(topic), "sdk").execute(client)
    assert recorded(standin, topic) == [b"sdk"]
    faults.queue("duplicate")
    assert network.wait(submit(network, topic, b"ours")).sequence == 2


def test_a_lost_answer_is_tried_at_the_next_node_and_recorded_once(standin, faults, network, topic):
    faults.queue("lose_answer")
    assert network.wait(submit(network, topic)).state == "recorded"
    assert recorded(standin, topic) == [b"hello"]


def test_sending_the_same_id_again_records_nothing_twice(standin, network, topic):
    name = submit(network, topic)
    for _ in range(3):
        network.submit(topic, b"hello", name, Terms(HBAR))
    assert recorded(standin, topic) == [b"hello"]


# Hazard 3: ids that repeat.


def test_transaction_ids_never_repeat_though_those_of_the_sdk_may(monkeypatch):
    moment = time.time()
    monkeypatch.setattr(time, "time", lambda: moment)
    account = AccountId.from_string("0.0.1001")
    assert len({str(TransactionId.generate(account)) for _ in range(1000)}) <= 4, "the SDK draws from four"
    ids = TransactionIds("0.0.1001", clock=lambda: 1_700_000_000_000_000_000)
    drawn = [ids.draw() for _ in range(10_000)]
    starts = [valid_start(name) for name in drawn]
    assert starts == sorted(set(starts))
    assert len(set(drawn)) == 10_000


def test_a_clock_that_steps_back_gives_later_ids_all_the_same():
    now = [1_700_000_000_000_000_000]
    ids = TransactionIds("0.0.1001", clock=lambda: now[0])
    first = valid_start(ids.draw())
    now[0] -= 3600 * 10**9
    assert valid_start(ids.draw()) == first + 1


# Hazards 4, 5 and 6: the subscription.


def test_the_sdk_loses_a_message_when_its_callback_fails_and_the_reader_returns_it_again(client, network, topic):
    network.wait(submit(network, topic, b"first"))
    came: list[bytes] = []

    def once(message):
        came.append(message.contents)
        if len(came) == 1:
            raise OSError("the disk is full")

    handle = TopicMessageQuery(topic_id=topic, limit=1).set_max_backoff(0.5).subscribe(client, on_message=once)
    network.wait(submit(network, topic, b"second"))
    handle.join(60)
    assert came == [b"first", b"second"], "the first was never handled, and does not come again"

    reader = TopicReader(network.mirror, topic)
    place = reader.head
    failed = [record.wire for record in reader.read()]
    again = [record.wire for record in TopicReader(network.mirror, topic, place).read()]
    assert failed == again == [b"first", b"second"]


def test_the_sdk_ends_a_subscription_after_some_disconnects_and_the_waker_connects_again(
    client, faults, standin, network, topic
):
    network.wait(submit(network, topic, b"x"))
    faults.queue("cut_stream", 2)
    ended: list[Exception] = []
    query = TopicMessageQuery(topic_id=topic).set_max_attempts(2).set_max_backoff(0.5)
    query.subscribe(client, on_message=lambda _: None, on_error=ended.append).join(60)
    assert ended, "two disconnects in its whole life, and it is dead"

    wake = threading.Event()
    waker = Waker(standin.mirror, topic, wake.set)
    waker.start()
    try:
        for number in range(4):
            faults.queue("cut_stream")
            connects = waker.connects
            network.wait(submit(network, topic, b"cut"))
            deadline = time.monotonic() + 60
            while waker.connects == connects and time.monotonic() < deadline:
                time.sleep(0.01)
            assert waker.connects > connects, f"it came back after disconnect {number + 1}"
    finally:
        waker.stop()


def test_the_sdk_drops_nanoseconds_and_the_reader_keeps_them(client, standin, network, topic):
    with standin.state.changed:
        standin.state.append(topic, network.operator.account, 1_700_000_000_123_456_789, b"x")
    times = []
    handle = TopicMessageQuery(topic_id=topic, limit=1).subscribe(
        client, lambda one: times.append(one.consensus_timestamp)
    )
    handle.join(60)
    assert times[0].microsecond * 1000 != 123_456_789
    assert TopicReader(network.mirror, topic).read()[0].timestamp == 1_700_000_000_123_456_789


# Hazard 7: TLS by the number of a port.


def test_the_sdk_says_tls_and_stays_plain_and_the_wrapper_refuses_tls_ports(client, operator, standin):
    client.set_transport_security(True)
    assert client.is_transport_security()
    channel = client.network.current_node._get_channel()
    assert channel is not None, "a plain channel, whatever was asked for"
    with pytest.raises(ConfigRefused, match="50212"):
        Network(Addresses("local", {"127.0.0.1:50212": "0.0.3"}, standin.rest, standin.mirror), operator)


# Hazard 8: slow receipts.


def test_a_receipt_that_is_late_is_found_within_half_a_second_of_it(faults, network, topic):
    faults.queue("delay")
    faults.delay_seconds = 1.0
    name = submit(network, topic)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    assert network.wait(name, sleep=sleep).state == "recorded"
    assert pauses
    assert max(pauses) <= 0.5


# What became of a transaction.


def test_a_lost_request_is_pending_until_it_can_no_longer_be_recorded(faults, operator):
    ahead = [0]
    with StandIn(faults=faults, clock=lambda: time.time_ns() + ahead[0]) as standin:
        network = Network(addresses_of(standin), Operator(*standin.open_account()))
        topic = create_topic(network, network.operator.key)
        faults.queue("lose_request")
        name = network.ids.draw()
        with pytest.raises(NetworkAway):
            network.submit(topic, b"x", name, Terms(HBAR))
        assert network.resolve(name).state == "pending"
        ahead[0] = 140 * 10**9
        assert network.resolve(name).state == "lost"
        network.close()


def test_after_three_minutes_the_mirror_knows_what_the_nodes_have_forgotten(operator):
    ahead = [0]
    with StandIn(clock=lambda: time.time_ns() + ahead[0]) as standin:
        network = Network(addresses_of(standin), Operator(*standin.open_account()))
        topic = create_topic(network, network.operator.key)
        name = submit(network, topic, b"x" * 300)
        ahead[0] = 3600 * 10**9
        found = network.resolve(name)
        assert (found.state, found.fee) == ("recorded", standin.state.rate.tinybars(submit_price(300)))
        network.close()


@pytest.mark.parametrize(
    ("wrong", "code"),
    [("key", "key_wrong"), ("account", "payer_unknown"), ("balance", "balance_empty"), ("fee", "fee_above_limit")],
)
def test_a_refusal_has_a_code_and_the_next_step(standin, network, topic, wrong, code):
    account, key = network.operator.account, network.operator.key
    if wrong == "key":
        key = PrivateKey.generate_ed25519()
    if wrong == "account":
        account = "0.0.424242"
    if wrong == "balance":
        account, key = standin.open_account(hbar=0)
    other = Network(addresses_of(standin), Operator(account, key))
    with pytest.raises(NetworkRefused) as refused:
        other.submit(topic, b"x", other.ids.draw(), Terms(1 if wrong == "fee" else HBAR))
    assert refused.value.code == code
    assert ";" in refused.value.message, "the next step is there"
    assert recorded(standin, topic) == []
    other.close()


@pytest.mark.parametrize(("offset", "code"), [(3600, "clock_ahead"), (-3600, "transaction_expired")])
def test_a_clock_that_is_wrong_by_an_hour_is_named(standin, operator, topic, offset, code):
    network = Network(addresses_of(standin), operator, clock=lambda: time.time_ns() + offset * 10**9)
    with pytest.raises(NetworkRefused) as refused:
        submit(network, topic)
    assert refused.value.code == code
    network.close()


def test_a_node_of_another_network_is_named(standin, operator, topic):
    wrong = Addresses("local", {next(iter(standin.nodes)): "0.0.77"}, standin.rest, standin.mirror)
    network = Network(wrong, operator)
    with pytest.raises(NetworkRefused) as refused:
        submit(network, topic)
    assert refused.value.code == "network_wrong"
    network.close()


def test_busy_nodes_are_asked_in_turn(faults, network, topic):
    faults.queue("busy")
    assert network.wait(submit(network, topic)).state == "recorded"
    faults.queue("busy", 2)
    with pytest.raises(NetworkAway) as away:
        submit(network, topic)
    assert away.value.code == "network_busy"


def test_an_operator_never_shows_its_key(operator):
    assert operator.key.to_string_raw() not in repr(operator)


def test_importing_redkey_and_its_server_loads_no_grpc():
    shown = "print([name for name in sys.modules if name.startswith(('grpc', 'hiero'))])"
    text = f"import sys, redkey, redkey.app, redkey.cli, redkey.client; {shown}"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_protobufs_of_hedera_and_a2a_live_in_one_process():
    text = "import a2a.types, redkey.hedera.network, redkey.hedera.standin.server, redkey.a2a.grpc_face; print('both')"
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert found.stdout.strip() == "both", found.stderr


@pytest.mark.parametrize("shape", ["ed25519 hex", "ed25519 der", "ecdsa 0x", "ecdsa der", "ecdsa 0x der"])
def test_a_key_file_has_any_shape_that_portals_show(tmp_path, shape):
    """The account of the key takes its transactions."""
    kind, _, shown = shape.partition(" ")
    key = PrivateKey.generate_ed25519() if kind == "ed25519" else PrivateKey.generate_ecdsa()
    text = key.to_string_der() if "der" in shown else key.to_string_raw()
    file = tmp_path / "operator.key"
    file.write_text(f"{'0x' if '0x' in shown else ''}{text}\n")
    file.chmod(0o600)
    with StandIn() as standin:
        account, _ = standin.open_account(key=key)
        opened = Network(addresses_of(standin), Operator(account, read_key(file)))
        topic = create_topic(opened, opened.operator.key)
        prices = TopicPrices(opened, topic, FeeTerms(USD))
        assert prices.price(100).tinybars > 0, "the mirror shows the same key"
        assert opened.wait(submit(opened, topic)).state == "recorded"
        opened.close()


@pytest.mark.parametrize("text", ["0x12", "nothing", "12" * 40])
def test_a_key_file_without_a_key_is_refused_and_not_quoted(tmp_path, text):
    file = tmp_path / "operator.key"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ConfigRefused) as refused:
        read_key(file)
    assert "0x" in refused.value.message
    assert text not in refused.value.message.replace(str(file), "").replace("0x and", "")
