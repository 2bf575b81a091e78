"""The stand-in network, judged by the official SDK's own client and by rows of public networks."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from pathlib import Path

import httpx2
import pytest
from hiero_sdk_python import (
    AccountId,
    CryptoGetAccountBalanceQuery,
    Hbar,
    PrivateKey,
    ResponseCode,
    TopicCreateTransaction,
    TopicDeleteTransaction,
    TopicInfoQuery,
    TopicMessageQuery,
    TopicMessageSubmitTransaction,
    TopicUpdateTransaction,
    TransferTransaction,
)
from hiero_sdk_python.consensus.topic_id import TopicId
from hiero_sdk_python.exceptions import PrecheckError
from hiero_sdk_python.query.transaction_record_query import TransactionRecordQuery
from hiero_sdk_python.tokens.custom_fixed_fee import CustomFixedFee
from hiero_sdk_python.transaction.custom_fee_limit import CustomFeeLimit

from redkey.hedera.network import Network, Operator, Terms
from redkey.hedera.standin.faults import FAULTS, Faults
from redkey.hedera.standin.server import StandIn
from redkey.hedera.standin.state import Topic
from redkey.ledger.fees import CREATE_TOPIC, HBAR, submit_price
from redkey.ledger.mirror import check_rows, parse_row
from redkey.ledger.record import Head, parse_hedera_time
from tests.harness.hedera import sdk_client

VECTORS = Path(__file__).parents[1] / "ledger" / "vectors" / "hcs_running_hash.json"


def rows(standin: StandIn, topic: str, **asked: object) -> list[dict[str, object]]:
    return page(standin, f"/api/v1/topics/{topic}/messages", **asked)["messages"]


def page(standin: StandIn, path: str, **asked: object) -> dict[str, object]:
    answer = httpx2.get(standin.rest + path, params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_messages_of_the_sdk_get_sequences_and_running_hashes_that_verify(standin, client, topic):
    for number in range(5):
        receipt = TopicMessageSubmitTransaction(TopicId.from_string(topic), f"message {number}").execute(client)
        assert (receipt.status, receipt.topic_sequence_number) == (ResponseCode.SUCCESS, number + 1)
    shown = rows(standin, topic)
    judged = check_rows([parse_row(row) for row in shown])
    assert [one.status for one in judged] == ["verified"] * 5
    assert b64decode(shown[-1]["running_hash"]) == receipt.topic_running_hash
    assert b64decode(shown[4]["message"]) == b"message 4"


def test_the_rows_of_public_networks_are_reproduced(standin):
    given = json.loads(VECTORS.read_text())["rows"]
    before = {(row["net"], row["topic"], row["seq"]): row for row in given}
    checked = 0
    for row in given:
        previous = before.get((row["net"], row["topic"], row["seq"] - 1))
        if (previous is None and row["seq"] > 1) or "message_b64" not in row:
            continue
        head = Head(row["seq"] - 1, 0, bytes.fromhex(previous["running_hash"]) if previous else bytes(48))
        with standin.state.changed:
            standin.state.topics[row["topic"]] = Topic(head=head)
            body = b64decode(row["message_b64"])
            standin.state.append(row["topic"], row["payer"], parse_hedera_time(row["ts"]), body)
        shown = rows(standin, row["topic"])[-1]
        assert b64decode(shown["running_hash"]).hex() == row["running_hash"]
        assert (shown["consensus_timestamp"], shown["payer_account_id"]) == (row["ts"], row["payer"])
        checked += 1
    assert checked >= 5


def test_topics_are_created_shown_changed_and_deleted(standin, client, operator):
    key = operator.key.public_key()
    created = TopicCreateTransaction(memo="first", admin_key=key, submit_key=key).execute(client)
    topic = created.topic_id
    info = TopicInfoQuery(topic).execute(client)
    assert (info.memo, info.sequence_number, info.running_hash) == ("first", 0, bytes(48))
    TopicUpdateTransaction(topic_id=topic, memo="second").execute(client)
    assert page(standin, f"/api/v1/topics/{topic}")["memo"] == "second"
    assert TopicDeleteTransaction(topic_id=topic).execute(client).status == ResponseCode.SUCCESS
    receipt = TopicMessageSubmitTransaction(topic, "late").execute(client)
    assert receipt.status == ResponseCode.INVALID_TOPIC_ID
    assert page(standin, f"/api/v1/topics/{topic}")["deleted"] is True


def test_errors_of_receipts_and_prechecks_are_those_of_the_network(standin, client, topic, operator):
    def status(transaction, with_client=client):
        return ResponseCode(transaction.execute(with_client).status).name

    def submit(text="x", to=topic):
        return TopicMessageSubmitTransaction(TopicId.from_string(to), text)

    assert status(submit(to="0.0.999999")) == "INVALID_TOPIC_ID"
    assert status(submit("x" * 1025, topic).set_chunk_size(2000)) == "MESSAGE_SIZE_TOO_LARGE"
    stranger = Operator(*standin.open_account())
    assert status(submit(), sdk_client(standin, stranger)) == "INVALID_SIGNATURE"
    assert rows(standin, topic) == [], "a failed submission takes no sequence"

    def precheck(transaction, with_client=client):
        with pytest.raises(PrecheckError) as refused:
            transaction.execute(with_client)
        return ResponseCode(refused.value.status).name

    wrong = sdk_client(standin, Operator(operator.account, PrivateKey.generate_ed25519()))
    assert precheck(submit(), wrong) == "INVALID_SIGNATURE"
    nowhere = sdk_client(standin, Operator("0.0.999999", operator.key))
    assert precheck(submit(), nowhere) == "PAYER_ACCOUNT_NOT_FOUND"
    cheap = submit()
    cheap.transaction_fee = 1
    assert precheck(cheap) == "INSUFFICIENT_TX_FEE"
    poor = Operator(*standin.open_account(hbar=0.000001))
    assert precheck(submit(), sdk_client(standin, poor)) == "INSUFFICIENT_PAYER_BALANCE"
    once = submit()
    once.freeze_with(client)
    once.execute(client)
    assert (
        precheck(TopicMessageSubmitTransaction(TopicId.from_string(topic), "y").set_transaction_id(once.transaction_id))
        == "DUPLICATE_TRANSACTION"
    )


def test_a_transaction_outside_its_time_is_refused():
    ahead = 3600 * 10**9
    with StandIn(clock=lambda: time.time_ns() + ahead) as late, StandIn(clock=lambda: time.time_ns() - ahead) as early:
        for running, status in ((late, "TRANSACTION_EXPIRED"), (early, "INVALID_TRANSACTION_START")):
            client = sdk_client(running, Operator(*running.open_account()))
            client.max_attempts = 1
            transaction = TopicCreateTransaction(memo="x").freeze_with(client).sign(client.operator_private_key)
            method = transaction._get_method(client.network.current_node._get_channel()).transaction
            code = method(transaction._to_proto()).nodeTransactionPrecheckCode
            assert ResponseCode(code).name == status


def test_fees_follow_the_table_and_the_exchange_rate_to_the_tinybar(standin, client, topic, operator):
    def balance():
        found = CryptoGetAccountBalanceQuery(AccountId.from_string(operator.account)).execute(client)
        return found.hbars.to_tinybars()

    rate = page(standin, "/api/v1/network/exchangerate")["current_rate"]
    for size in (1, 100, 101, 600, 1024):
        before = balance()
        sent = TopicMessageSubmitTransaction(TopicId.from_string(topic), "x" * size)
        response = sent.execute(client, wait_for_receipt=False)
        response.get_receipt(client)
        expected = submit_price(size) * rate["hbar_equivalent"] // rate["cent_equivalent"]
        assert before - balance() == expected
        record = TransactionRecordQuery(response.transaction_id).execute(client)
        assert record.transaction_fee == expected
    shown = page(standin, "/api/v1/transactions", transactiontype="CONSENSUSCREATETOPIC")["transactions"]
    assert shown[0]["charged_tx_fee"] == standin.state.rate.tinybars(CREATE_TOPIC)


def test_the_price_of_a_transaction_is_estimated_by_the_mirror(standin, client, topic):
    transaction = TopicMessageSubmitTransaction(TopicId.from_string(topic), "x" * 600).freeze_with(client)
    transaction.sign(client.operator_private_key)
    answer = httpx2.post(f"{standin.rest}/api/v1/network/fees", content=transaction._to_proto().SerializeToString())
    assert answer.json()["total"] == submit_price(600)
    assert httpx2.post(f"{standin.rest}/api/v1/network/fees", content=b"\xff").status_code == 400


def test_a_topic_with_fees_of_its_own_is_paid_within_the_limit(standin, client, operator):
    collector, _ = standin.open_account(hbar=0)
    fee = CustomFixedFee(fee_collector_account_id=AccountId.from_string(collector)).set_hbar_amount(Hbar(1))
    topic = TopicCreateTransaction(memo="paid", custom_fees=[fee])
    topic.transaction_fee = Hbar(100)
    topic_id = topic.execute(client).topic_id

    def submit(limit):
        sent = TopicMessageSubmitTransaction(topic_id, "x")
        if limit:
            allowed = CustomFixedFee().set_hbar_amount(limit)
            payer = AccountId.from_string(operator.account)
            sent.add_custom_fee_limit(CustomFeeLimit().set_payer_id(payer).add_custom_fee(allowed))
        return ResponseCode(sent.execute(client).status).name

    assert submit(None) == "NO_VALID_MAX_CUSTOM_FEE"
    assert submit(Hbar.from_tinybars(HBAR - 1)) == "MAX_CUSTOM_FEE_LIMIT_EXCEEDED"
    assert submit(Hbar(1)) == "SUCCESS"
    assert standin.state.accounts[collector].balance == HBAR


def test_the_stream_gives_every_message_in_order(standin, client, topic):
    came: list[bytes] = []
    query = TopicMessageQuery(topic_id=topic, limit=3)
    handle = query.subscribe(client, on_message=lambda message: came.append(message.contents))
    for number in range(3):
        TopicMessageSubmitTransaction(TopicId.from_string(topic), f"{number}").execute(client)
    handle.join(60)
    assert came == [b"0", b"1", b"2"]


def test_hbar_is_transferred_between_accounts(standin, client, operator):
    other, _ = standin.open_account(hbar=0)
    moved = TransferTransaction()
    moved.add_hbar_transfer(AccountId.from_string(operator.account), -HBAR)
    moved.add_hbar_transfer(AccountId.from_string(other), HBAR)
    assert moved.execute(client).status == ResponseCode.SUCCESS
    assert page(standin, f"/api/v1/accounts/{other}")["balance"]["balance"] == HBAR


def test_pages_of_the_mirror_are_those_of_the_real_one(standin, client, network, topic):
    for number in range(30):
        network.submit(topic, f"{number}".encode(), network.ids.draw(), Terms(HBAR))
    path = f"/api/v1/topics/{topic}/messages"
    first = page(standin, path)
    assert len(first["messages"]) == 25, "a page has 25 rows by default"
    second = httpx2.get(standin.rest + first["links"]["next"]).json()
    assert [row["sequence_number"] for row in second["messages"]] == [26, 27, 28, 29, 30]
    assert second["links"]["next"] is None
    full = page(standin, path, limit=5, sequencenumber="gt:25")
    assert full["links"]["next"], "a full page links on, also when it was the last"
    assert httpx2.get(standin.rest + full["links"]["next"]).json()["messages"] == []
    newest = page(standin, path, order="desc", limit=2)
    assert [row["sequence_number"] for row in newest["messages"]] == [30, 29]
    assert page(standin, path, limit=1000)["links"]["next"] is None
    assert page(standin, "/api/v1/topics/0.0.4242/messages")["messages"] == [], "an unknown topic has no messages"
    for asked in ({"limit": "x"}, {"limit": 0}, {"order": "up"}, {"timestamp": "about:1"}, {"colour": "red"}):
        answer = httpx2.get(standin.rest + path, params=asked)
        assert answer.status_code == 400
        assert answer.json()["_status"]["messages"][0]["message"]
    assert httpx2.get(f"{standin.rest}/api/v1/topics/0.0.4242").status_code == 404


def test_each_fault_happens_when_it_is_asked_for(faults):
    with pytest.raises(ValueError, match="is not a fault"):
        faults.queue("fire")
    for name in FAULTS:
        assert not faults.happens(name)
        faults.queue(name)
        assert faults.happens(name)
        assert not faults.happens(name)
    rated = Faults({"busy": 0.1}, seed=7)
    assert 50 < sum(rated.happens("busy") for _ in range(1000)) < 150


def test_a_lagging_mirror_shows_a_message_later(standin, faults, network: Network, topic):
    faults.queue("lag")
    faults.lag_seconds = 30
    name = network.ids.draw()
    network.submit(topic, b"late", name, Terms(HBAR))
    assert network.resolve(name).state == "recorded"
    assert rows(standin, topic) == []
    assert network.mirror.transaction(name) is None
    assert network.resolve_by_mirror(name).state == "pending"
