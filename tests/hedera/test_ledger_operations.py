"""What operators do with the topics of workspaces, by HTTP and by commands, and what is refused with a next step."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hiero_sdk_python import AccountId, Hbar, PrivateKey
from hiero_sdk_python.consensus.topic_create_transaction import TopicCreateTransaction
from hiero_sdk_python.consensus.topic_delete_transaction import TopicDeleteTransaction
from hiero_sdk_python.consensus.topic_id import TopicId
from hiero_sdk_python.tokens.custom_fixed_fee import CustomFixedFee

from redkey.client import RedKey
from redkey.hedera.network import Network, Operator, Terms
from redkey.hedera.standin.faults import Faults
from redkey.hedera.standin.server import StandIn
from redkey.ledger.fees import HBAR
from tests.harness.hedera import addresses_of, create_topic
from tests.harness.organisations import Organisation, again, organisations, said, until
from tests.harness.server import serving

REDKEY = [sys.executable, "-m", "redkey"]
FIRST = "wk_01JTMX9A2B3C4D5E6F7G8H9J"


@pytest.fixture(scope="module")
def network_faults() -> Faults:
    """No faults; a test adds its own."""
    return Faults(delay_seconds=0.1, lag_seconds=0.1)


@pytest.fixture(scope="module")
def shared_network(network_faults: Faults) -> Iterator[StandIn]:
    """A network for all tests of this file."""
    with StandIn(faults=network_faults) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server is."""
    return tmp_path_factory.mktemp("operator")


@pytest.fixture(scope="module")
def ours(shared_network: StandIn, folder: Path) -> Iterator[Organisation]:
    """One organisation with a server."""
    with organisations(shared_network, folder, "ours") as (found,):
        yield found


@pytest.fixture(scope="module")
def customer(shared_network: StandIn) -> Iterator[Network]:
    """A customer's account on the network."""
    opened = Network(addresses_of(shared_network), Operator(*shared_network.open_account()))
    yield opened
    opened.close()


def begin(ours: Organisation) -> tuple[str, RedKey]:
    """A workspace on a topic of the server's own."""
    begun = said(ours.operator.post("/workspaces", json={"order": "network"}), 201)
    return begun["workspaceId"], RedKey(ours.server.url, begun["apiKey"])


def refused(response: Any, status: int, code: str) -> str:
    """The detail of a refusal."""
    found = said(response, status)
    assert found["code"] == code, found
    return str(found["detail"])


def redkey(ours: Organisation, *arguments: str, code: int = 0) -> str:
    """What a command prints."""
    asked = [*REDKEY, *arguments]
    found = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == code, found.stdout + found.stderr
    return found.stdout + found.stderr


def test_a_workspace_is_begun_shown_and_its_topic_retired_by_commands(
    ours: Organisation, shared_network: StandIn
) -> None:
    data = ("--data", str(ours.server.data))
    begun = json.loads(redkey(ours, "hedera", "workspace", "begin", "--name", "Podcast", "--json", *data))
    workspace_id, topic = begun["workspaceId"], begun["topic"]
    state = shared_network.state.topics[topic]
    assert state.memo == f"RedKey {workspace_id}"
    assert state.submit_key is not None
    shown = redkey(ours, "hedera", "workspace", "show", workspace_id, *data)
    assert f"{topic} of local" in shown
    assert topic in redkey(ours, "hedera", "topic", "list", workspace_id, *data)
    with RedKey(ours.server.url, begun["apiKey"]) as rk:
        rk.queues.create("work")
        redkey(ours, "hedera", "topic", "retire", workspace_id, topic, "--delete", *data)
        assert state.is_deleted
        retired = json.loads(redkey(ours, "hedera", "topic", "list", workspace_id, "--json", *data))
        assert retired["retiredAt"]
        until(lambda: _refusal_of_a_queue(rk) != "order_lost")
        assert _refusal_of_a_queue(rk) in ("order_refused", "order_unavailable", "network_fee_refused")
        assert [one.queue_id for one in rk.queues.list()] == ["queue_work"], "reading goes on"


def _refusal_of_a_queue(rk: RedKey) -> str:
    from redkey.client import ApiError

    with pytest.raises(ApiError) as refusal:
        rk.with_options(max_retries=0).queues.create("more")
    return refusal.value.code


def test_a_customers_topic_is_written_to_with_the_right_that_was_given(
    customer: Network, shared_network: StandIn, tmp_path: Path
) -> None:
    """With the submit key in a file of its own, which is read when the topic is opened."""
    key = PrivateKey.generate_ed25519()
    topic = create_topic(customer, key, sign=True)
    asked = {"topic": topic, "owner": "customer", "account": customer.operator.account}
    ledger = f"/workspaces/{FIRST}CT/ledger"
    keys = tmp_path / "submit"
    keys.mkdir()
    with organisations(shared_network, tmp_path, "one") as (one,):
        assert f"{topic}.key" in refused(one.operator.put(ledger, json=asked), 422, "topic_foreign")
        one.server.stop()
        (keys / f"{topic}.key").write_text(key.to_string_der())
        (keys / f"{topic}.key").chmod(0o600)
        with again(one, tmp_path / "one", f'submit_keys = "{keys}"\n') as later:
            begun = said(later.operator.put(ledger, json=asked))
            assert begun["status"] == "begun"
            [shown] = said(later.operator.get(f"{ledger}/topics"))["items"]
            assert (shown["owner"], shown["account"]) == ("customer", customer.operator.account)
            with RedKey(later.server.url, begun["apiKey"]) as rk:
                rk.queues.create("work")
            messages = shared_network.state.topics[topic].messages
            assert {one.record.payer for one in messages} == {later.account}, "RedKey pays, with the owner's key"
            secret = key.to_string_raw()
            files = [file for file in later.server.data.rglob("*") if file.is_file()]
            assert not any(secret.encode() in file.read_bytes() for file in files)
            assert secret not in later.server.logs()


def test_a_topic_is_handed_over_only_as_the_network_shows_it(
    ours: Organisation, customer: Network, shared_network: StandIn, tmp_path: Path
) -> None:
    workspace_id, rk = begin(ours)
    topic = ours.ledger(workspace_id)["topic"]
    path = f"/workspaces/{workspace_id}/ledger/topics/{topic}/hand-over"
    body = {"account": customer.operator.account}
    detail = refused(ours.operator.post(path, json=body), 409, "topic_not_theirs")
    assert "redkey hedera topic hand-over" in detail
    refused(ours.operator.post(path, json={"account": "0.0.424242"}), 422, "account_unknown")
    key, config = tmp_path / "customer.key", tmp_path / "hedera.toml"
    key.write_text(customer.operator.key.to_string_der())
    key.chmod(0o600)
    config.write_text(ours.config)
    redkey(ours, "hedera", "topic", "hand-over", topic, "--key-file", str(key), "--config", str(config))
    said(ours.operator.post(path, json=body))
    [shown] = ours.ledger(workspace_id)["topics"]
    assert (shown["owner"], shown["account"]) == ("customer", customer.operator.account)
    with rk:
        assert rk.queues.create("still").queue_id == "queue_still"
    retire = f"/workspaces/{workspace_id}/ledger/topics/{topic}/retire"
    refused(ours.operator.post(retire, json={"delete": True}), 409, "topic_foreign")
    assert not shared_network.state.topics[topic].is_deleted


def test_a_party_is_added_and_removed_by_commands_and_the_network_enforces_it(
    ours: Organisation, customer: Network, shared_network: StandIn
) -> None:
    """The submit key has the party's key, and has it no more; what still gets to the topic counts for nothing."""
    workspace_id, rk = begin(ours)
    rk.close()
    topic, account = ours.ledger(workspace_id)["topic"], customer.operator.account
    data = ("--data", str(ours.server.data))

    def status_of_a_message() -> str:
        name = customer.ids.draw()
        customer.submit(topic, b"a stranger's message", name, Terms(HBAR))
        return customer.wait(name).status

    assert status_of_a_message() == "INVALID_SIGNATURE"
    redkey(ours, "hedera", "party", "add", workspace_id, account, *data)
    until(lambda: [one["account"] for one in ours.ledger(workspace_id)["parties"]] == [account])
    assert status_of_a_message() == "SUCCESS"
    redkey(ours, "hedera", "party", "remove", workspace_id, account, *data)
    until(lambda: not ours.ledger(workspace_id)["parties"])
    assert status_of_a_message() == "INVALID_SIGNATURE"
    # If the network took such a message all the same, the ledger would not know its payer any more.
    state = shared_network.state
    with state.changed:
        state.append(topic, account, state.next_timestamp(), json.dumps({"late": True}).encode())
    path = f"/workspaces/{workspace_id}/ledger/left-out"
    until(lambda: len(said(ours.operator.get(path))["items"]) == 2)
    assert {one["account"] for one in said(ours.operator.get(path))["items"]} == {account}
    path = f"/workspaces/{workspace_id}/ledger/parties/{account}"
    refused(ours.operator.delete(path), 404, "party_not_found")


def test_bad_input_is_told_with_the_next_step_and_nothing_is_begun(ours: Organisation, customer: Network) -> None:
    ledger = f"/workspaces/{FIRST}KR/ledger"
    assert "hedera.network" in refused(ours.operator.put(ledger, json={"topic": "0.0.424242"}), 422, "topic_unknown")
    deleted = create_topic(customer, customer.operator.key)
    gone = TopicDeleteTransaction(TopicId.from_string(deleted))
    name = customer.ids.draw()
    customer.send(gone, name, Terms(5 * HBAR))
    customer.wait(name)
    refused(ours.operator.put(ledger, json={"topic": deleted}), 422, "topic_unknown")
    foreign = create_topic(customer, customer.operator.key)
    refused(ours.operator.put(ledger, json={"topic": foreign}), 422, "topic_foreign")
    workspace_id, rk = begin(ours)
    rk.close()
    topic = ours.ledger(workspace_id)["topic"]
    assert workspace_id in refused(ours.operator.put(ledger, json={"topic": topic}), 409, "topic_taken")
    other = f"/workspaces/{workspace_id}/ledger"
    refused(ours.operator.put(other, json={"topic": foreign}), 409, "order_exists")
    refused(ours.operator.put(f"/workspaces/{ours.server.workspace_id}/ledger", json={}), 409, "workspace_exists")
    refused(ours.operator.put("/workspaces/nothing/ledger", json={}), 422, "id_invalid")
    refused(ours.operator.put(ledger, json={"owner": "customer"}), 422, "topic_missing")
    said(ours.operator.get(ledger), 404)


@pytest.mark.parametrize("limit", [0, 1])
def test_a_topics_own_fee_is_paid_within_the_stated_limit_and_not_above(
    customer: Network, shared_network: StandIn, tmp_path: Path, limit: int
) -> None:
    """HIP-991: a customer's topic asks for a fee of its own, which goes to the customer."""
    fee = CustomFixedFee().set_hbar_amount(Hbar.from_tinybars(50_000))
    fee.set_fee_collector_account_id(AccountId.from_string(customer.operator.account))
    name = customer.ids.draw()
    customer.send(TopicCreateTransaction(memo="own fee", custom_fees=[fee]), name, Terms(50 * HBAR))
    topic = customer.wait(name).entity
    ledger, asked = f"/workspaces/{FIRST}H{limit}/ledger", {"topic": topic, "owner": "customer"}
    with organisations(shared_network, tmp_path, "one") as (one,):
        one.server.stop()
        more = f"max_custom_fee_usd = {limit}\nmax_fee_usd = 1\n"
        with again(one, tmp_path / "one", more) as later:
            response = later.operator.put(ledger, json=asked)
            if not limit:
                refused(response, 402, "network_fee_refused")
                assert shared_network.state.topics[topic].messages == []
                return
            said(response)
            until(lambda: later.spent(f"{FIRST}H{limit}")[1] == 0)
            messages = len(shared_network.state.topics[topic].messages)
            history = [one for one in shared_network.state.history if one.entity == topic and one.message]
            assert sum(one.transfers.get(customer.operator.account, 0) for one in history) == 50_000 * messages
            paid = -sum(one.transfers.get(later.account, 0) for one in history)
            assert later.spent(f"{FIRST}H{limit}")[0] == paid


def test_a_mirror_that_is_down_is_shown_and_what_was_asked_for_comes_when_it_is_back(
    ours: Organisation, network_faults: Faults
) -> None:
    workspace_id, rk = begin(ours)
    with rk, ThreadPoolExecutor(1) as thread:
        network_faults.rate("mirror_down", 1.0)
        try:
            until(lambda: ours.ledger(workspace_id).get("failure") == "mirror_unusable")
            waiting = thread.submit(lambda: rk.queues.create("patient").queue_id)
            assert [one.queue_id for one in rk.queues.list()] == [], "nothing is answered that is not folded"
        finally:
            network_faults.clear()
        assert waiting.result(60) == "queue_patient"
        until(lambda: "failure" not in ours.ledger(workspace_id))


def test_a_wrong_key_is_told_to_the_operator_with_the_next_step(shared_network: StandIn, tmp_path: Path) -> None:
    with organisations(shared_network, tmp_path, "one") as (one,):
        one.server.stop()
        key = PrivateKey.generate_ed25519().to_string_der()
        (tmp_path / "one" / "hedera.key").write_text(key)
        with again(one, tmp_path / "one", "") as later:
            detail = refused(later.operator.post("/workspaces", json={"order": "network"}), 409, "key_wrong")
            assert "hedera.key_file" in detail
            assert len(said(later.operator.get("/workspaces"))["items"]) == 1
            assert key not in later.server.logs()


def test_only_operators_ask_and_their_document_stands_apart(ours: Organisation) -> None:
    workspace_id, rk = begin(ours)
    with rk:
        key = {"authorization": f"Bearer {rk.settings.api_key}"}
    for path in (f"/workspaces/{workspace_id}/ledger", "/ledger/openapi.json"):
        refused(ours.operator.get(path, headers=key), 403, "insufficient_scope")
    theirs = said(ours.operator.get("/ledger/openapi.json"))
    everybodys = ours.operator.get("/openapi.json").text
    assert "/workspaces/{workspaceId}/ledger" in theirs["paths"]
    assert not set(theirs["paths"]) & set(json.loads(everybodys)["paths"])
    assert "edera" not in everybodys
    assert "hbar" not in everybodys.lower()


def test_a_server_without_a_network_says_how_to_get_one(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        one = Organisation(server, 'operator = ""')
        detail = refused(one.operator.post("/workspaces", json={"order": "network"}), 409, "network_not_configured")
        assert "hedera.network" in detail
        assert one.ledger(server.workspace_id)["order"] == "local"
        one.close()


def test_an_account_without_balance_is_told_and_what_was_promised_is_kept(
    ours: Organisation, shared_network: StandIn
) -> None:
    workspace_id, rk = begin(ours)
    account = shared_network.state.accounts[ours.account]
    with rk:
        rk.queues.create("before")
        kept, account.balance = account.balance, 5
        try:
            found = ours.operator.post(
                "/queues", json={"name": "poor"}, headers={"authorization": f"Bearer {rk.settings.api_key}"}
            )
            refused(found, 402, "network_balance_empty")
            assert names_no_network(found.text)
            until(lambda: "balance_low" in ours.server.logs())
        finally:
            account.balance = kept
        until(lambda: _takes(rk, "rich"))
        assert sorted(one.queue_id for one in rk.queues.list()) == ["queue_before", "queue_rich"]
    until(lambda: ours.spent(workspace_id)[1] == 0)


def names_no_network(text: str) -> bool:
    """Whether a caller's error says nothing of the network behind the ledger."""
    return not any(word in text.lower() for word in ("hedera", "hbar", "tinybar", "0.0."))


def _takes(rk: RedKey, name: str) -> bool:
    from redkey.client import ApiError

    try:
        rk.with_options(max_retries=0).queues.create(name)
    except ApiError as refusal:
        return refusal.status not in (402, 503)
    return True


def test_a_budget_that_is_used_up_is_402_and_nothing_is_sent(
    shared_network: StandIn, folder: Path, tmp_path: Path
) -> None:
    with organisations(shared_network, tmp_path, "thrifty") as (one,):
        workspace_id, rk = begin(one)
        topic = one.ledger(workspace_id)["topic"]
        with rk:
            rk.queues.create("work")
        until(lambda: one.spent(workspace_id)[1] == 0)
        sent = len(shared_network.state.topics[topic].messages)
        one.server.stop()
        limit = one.config.replace("budget_usd_per_hour = 1000", "budget_usd_per_hour = 0.001")
        with serving(tmp_path / "thrifty", config=limit) as server, RedKey(server.url, rk.settings.api_key) as later:
            headers = {"authorization": f"Bearer {rk.settings.api_key}"}

            def refusal() -> httpx2.Response:
                return httpx2.post(f"{server.url}/queues", json={"name": "more"}, headers=headers, timeout=60)

            until(lambda: refusal().json()["code"] == "network_budget_exhausted")
            assert refusal().status_code == 402
            assert names_no_network(refusal().text)
            operator = Organisation(server, limit)
            assert operator.ledger(workspace_id)["priceFailure"] == "network_budget_exhausted"
            operator.close()
            assert "hedera.budget_usd_per_hour" in server.logs(), "the operator learns which setting it is"
            assert len(later.queues.list().page().items) == 1
        assert len(shared_network.state.topics[topic].messages) == sent


def test_reconcile_finds_the_books_equal_to_the_tinybar(ours: Organisation, tmp_path: Path) -> None:
    workspace_id, rk = begin(ours)
    with rk:
        rk.queues.create("work")
    until(lambda: ours.spent(workspace_id)[1] == 0)
    config = tmp_path / "hedera.toml"
    config.write_text(ours.config)
    data = ("--data", str(ours.server.data))
    workspaces = said(ours.operator.get("/workspaces", params={"limit": 100}))["items"]
    until(lambda: all(ours.spent(one["workspaceId"])[1] == 0 for one in workspaces))
    found = redkey(ours, "usage", "reconcile", "--json", "--config", str(config), *data)
    fees = json.loads(found.splitlines()[-1])
    assert fees["network"] == fees["booked"]
    assert fees["network"][1] > 0
