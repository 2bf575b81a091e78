"""Two organisations with servers of their own on one topic: from a call of the SDK to the network and back."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from click.testing import CliRunner

from redkey.cli import main
from redkey.client import Claimed, Missed, Rejected
from redkey.hedera.mirror import Mirror
from redkey.hedera.reader import TopicReader
from redkey.hedera.standin.faults import Faults
from redkey.hedera.standin.server import StandIn
from redkey.ledger.verify import Policy, verify_receipt
from redkey.readmodel.digest import replay_digest, rows_digest
from redkey.services.ordered.rebuild import rebuild
from redkey.stores.clock import SystemClock
from redkey.stores.memory import MemoryDisk, MemoryStore
from redkey.stores.opening import open_store
from tests.harness.organisations import Organisation, again, organisations, said, share, until
from tests.harness.workshop import checked
from tests.hedera.test_ordering import RATES


@pytest.fixture(scope="module")
def network_faults() -> Faults:
    """No faults; a test adds its own."""
    return Faults(delay_seconds=0.2, lag_seconds=0.2)


@pytest.fixture(scope="module")
def shared_network(network_faults: Faults) -> Iterator[StandIn]:
    """A network for all tests of this file."""
    with StandIn(faults=network_faults, nodes=2) as running:
        yield running


@pytest.fixture(scope="module")
def pair(
    shared_network: StandIn, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Organisation, Organisation, str]]:
    """Two organisations and the workspace that they share."""
    with organisations(shared_network, tmp_path_factory.mktemp("two"), "ours", "theirs") as (ours, theirs):
        yield ours, theirs, share(ours, theirs)


def agent(at: Organisation, name: str) -> str:
    """Register an agent at a server."""
    return str(at.admin.agents.register(card={"name": name, "version": "1"}).agent_id)


def task(at: Organisation, **more: Any) -> str:
    """Create a task at a server."""
    return str(at.admin.tasks.create("work", title="Write the intro", **more).task_id)


def together(ours: Organisation, theirs: Organisation, workspace_id: str) -> int:
    """Wait until both have read everything; up to which message."""

    def read() -> int:
        first, second = ours.ledger(workspace_id), theirs.ledger(workspace_id)
        same = first["readTo"] == second["readTo"] and first["records"] == second["records"]
        return int(first["readTo"]) if same else 0

    return int(until(read))


def test_thirty_two_claimants_at_two_servers_have_one_winner_whatever_the_network_does(
    pair: tuple[Organisation, Organisation, str], network_faults: Faults
) -> None:
    ours, theirs, workspace_id = pair
    with ThreadPoolExecutor(32) as threads:
        agents = [*threads.map(lambda number: agent((ours, theirs)[number % 2], f"racer-{number}"), range(32))]
        wanted = task(ours)
        together(ours, theirs, workspace_id)
        for name, rate in RATES.items():
            network_faults.rate(name, rate)
        try:

            def claim(number: int) -> Claimed | Missed | Rejected:
                at = (ours, theirs)[number % 2]
                return at.admin.tasks.claim(wanted, agents[number])

            found = [*threads.map(claim, range(32))]
        finally:
            network_faults.clear()
    won = [one for one in found if isinstance(one, Claimed)]
    missed = [one for one in found if isinstance(one, Missed)]
    assert (len(won), len(missed)) == (1, 31)
    assert {one.winning_agent_id for one in missed} == {won[0].agent_id}
    together(ours, theirs, workspace_id)


def test_both_have_the_same_ledger_and_a_stranger_computes_it_from_the_mirror_alone(
    pair: tuple[Organisation, Organisation, str], shared_network: StandIn
) -> None:
    ours, theirs, workspace_id = pair
    last = together(ours, theirs, workspace_id)
    local = ours.ledger(workspace_id)["localTopic"]
    stranger = MemoryStore(SystemClock(), MemoryDisk())
    mirror = Mirror(shared_network.rest)
    reader = TopicReader(mirror, ours.ledger(workspace_id)["topic"])
    rebuilt = rebuild(stranger, "local", ours.ledger(workspace_id)["topic"], iter(reader.read, []), {})
    mirror.close()
    assert (rebuilt.workspace_id, rebuilt.topic, rebuilt.messages) == (workspace_id, local, last)
    for one in (ours, theirs):
        with open_store(one.server.data, create=False) as store:
            records = store.read(local, 0, 100_000)
            assert records == stranger.read(local, 0, 100_000)
            types = Counter(json.loads(record.wire)["type"] for record in records)
            assert (types["signer.added"], types["signer.retired"]) == (2, 0), "each signs for itself"
            assert rows_digest(store, local) == replay_digest(stranger, local)
        report = checked(one.server.data)
        assert report.clean, report.faults


def test_a_caller_that_does_not_wait_gets_the_event_id_and_learns_the_rest_by_repeating(
    pair: tuple[Organisation, Organisation, str], network_faults: Faults
) -> None:
    ours, _, _ = pair
    body = {"title": "Later"}
    key = {"authorization": f"Bearer {ours.admin.settings.api_key}", "idempotency-key": "no-wait"}
    with httpx2.Client(base_url=ours.server.url, headers=key, timeout=60) as http:
        network_faults.rate("lag", 1.0)
        try:
            accepted = http.post("/queues/work/tasks", json=body, headers={"prefer": "respond-async"})
            told = said(accepted, 202)
            assert accepted.headers["preference-applied"] == "respond-async"
            assert told["status"] == "accepted"
            assert http.get(f"/events/{told['eventId']}").status_code == 404, "it is ordered and not folded yet"
        finally:
            network_faults.clear()
        created = said(http.post("/queues/work/tasks", json=body), 201)
        assert created["eventId"] == told["eventId"]
        assert said(http.get(f"/events/{told['eventId']}"))["eventId"] == told["eventId"]


def test_a_lease_that_runs_out_in_silence_is_shown_by_one_tick(
    pair: tuple[Organisation, Organisation, str], shared_network: StandIn
) -> None:
    ours, theirs, workspace_id = pair
    who = agent(ours, "sleeper")
    wanted = task(ours)
    assert isinstance(ours.admin.tasks.claim(wanted, who, lease_seconds=5), Claimed)
    before = together(ours, theirs, workspace_id)
    until(lambda: theirs.admin.tasks.get(wanted).state == "available")
    after = together(ours, theirs, workspace_id)
    # Each of the two servers sends one at most; the second is a copy.
    assert 1 <= after - before <= 2
    left = said(ours.operator.get(f"/workspaces/{workspace_id}/ledger/left-out", params={"after": before}))["items"]
    assert {one["reason"] for one in left} == {"not_a_request"}


def test_heartbeats_and_progress_are_messages_only_as_often_as_the_lease_needs(
    pair: tuple[Organisation, Organisation, str], shared_network: StandIn
) -> None:
    ours, theirs, workspace_id = pair
    who = agent(ours, "worker")
    claimed = ours.admin.tasks.claim(task(ours), who, lease_seconds=600)
    assert isinstance(claimed, Claimed)
    for percent in range(20):
        ours.admin.claims.heartbeat(claimed.claim_id)
        ours.admin.claims.report_progress(claimed.claim_id, percent=percent)
    together(ours, theirs, workspace_id)
    messages = shared_network.state.topics[ours.ledger(workspace_id)["topic"]].messages
    wires = [json.loads(one.record.wire) for one in messages if claimed.claim_id.encode() in one.record.wire]
    assert Counter(one["type"] for one in wires)["task.progress"] == 1, "the first report"
    assert Counter(one["type"] for one in wires)["task.lease_extended"] == 0


def test_an_agent_that_waits_at_one_server_gets_the_task_that_the_other_creates(
    pair: tuple[Organisation, Organisation, str],
) -> None:
    ours, theirs, _ = pair
    ours.admin.queues.create("waited")
    who = agent(theirs, "waiter")
    until(lambda: any(one.queue_id == "queue_waited" for one in theirs.admin.queues.list()))
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(lambda: theirs.admin.queues.claim_next("waited", who, wait=50))
        created = ours.admin.tasks.create("waited", title="At last").task_id
        found = waiting.result(60)
    assert isinstance(found, Claimed)
    assert found.task_id == created


def test_a_receipt_names_its_message_and_the_verifier_computes_what_follows_from_it(
    pair: tuple[Organisation, Organisation, str], shared_network: StandIn, tmp_path: Path
) -> None:
    """At either server, for a message and for its consequence; against the mirror, and offline from a saved answer."""
    ours, theirs, workspace_id = pair
    topic = ours.ledger(workspace_id)["topic"]
    wanted = task(ours)
    assert isinstance(ours.admin.tasks.claim(wanted, agent(ours, "proven")), Claimed)
    together(ours, theirs, workspace_id)
    events = [*theirs.admin.tasks.events(wanted)]
    asked, won = (next(one for one in events if one.type == name) for name in ("task.claim_attempted", "task.claimed"))
    saved = tmp_path / "mirror.json"
    mirror = Mirror(shared_network.rest)
    rows: list[dict[str, Any]] = []
    while page := mirror.messages(topic, sequencenumber=f"gt:{len(rows)}"):
        rows += page
    mirror.close()
    saved.write_text(json.dumps({"messages": rows}))
    for at, event in ((ours, asked), (theirs, asked), (theirs, won)):
        receipt = tmp_path / "receipt.json"
        at.admin.receipts.get(event.event_id).save(receipt)
        order = json.loads(receipt.read_text())["offline"]["order"]
        assert (order["network"], order["topic"]) == ("local", topic)
        message = shared_network.state.topics[topic].messages[order["until"] - 1].record
        assert ("sequence" in order) == (event is asked)
        if event is asked:
            assert json.loads(receipt.read_text())["offline"]["wire"].encode() == message.wire
        for place in (shared_network.rest, str(saved)):
            verdict = verified(receipt, place)
            assert verdict["passed"], verdict
            assert verdict["levels"]["anchored"]["holds"]
        assert not verified(receipt)["levels"]["anchored"]["holds"], "without messages nothing is computed"


def test_a_receipt_that_says_something_else_than_the_messages_is_not_anchored(
    pair: tuple[Organisation, Organisation, str], shared_network: StandIn, tmp_path: Path
) -> None:
    """The operator of a server signs what it likes; its messages say otherwise."""
    ours, _, workspace_id = pair
    topic = ours.ledger(workspace_id)["topic"]
    event = next(iter(ours.admin.tasks.events(task(ours))))
    receipt = json.loads(ours.admin.receipts.get(event.event_id).document)
    file = tmp_path / "receipt.json"
    for change, code in (
        ({"sequence": receipt["offline"]["order"]["sequence"] - 1}, "order_differs"),
        ({"until": 10**6}, "mirror_behind"),
        ({"topic": "0.0.424242"}, "workspace_missing"),
    ):
        forged = json.loads(json.dumps(receipt))
        forged["offline"]["order"].update(change)
        file.write_text(json.dumps(forged))
        found = verified(file, shared_network.rest)
        assert not found["passed"]
        assert [one["code"] for one in found["findings"]] == [code], found
    with open_store(ours.server.data, create=False) as store:
        [record] = store.read(ours.ledger(workspace_id)["localTopic"], receipt["sequence"] - 1, 1)
    other, message = msgspec.structs.replace(record, payer="0.0.5"), receipt["offline"]["order"]["sequence"]
    same = verify_receipt(json.dumps(receipt).encode(), Policy(compute=lambda order, sequence: (record, message)))
    assert same.levels["anchored"].holds
    forged = verify_receipt(json.dumps(receipt).encode(), Policy(compute=lambda order, sequence: (other, message)))
    assert (forged.levels["anchored"].holds, [one.code for one in forged.findings]) == (False, ["order_differs"])
    file.write_text(json.dumps(receipt))
    saved = tmp_path / "short.json"
    mirror = Mirror(shared_network.rest)
    saved.write_text(json.dumps({"messages": mirror.messages(topic, sequencenumber="gt:1")}))
    mirror.close()
    assert [one["code"] for one in verified(file, str(saved))["findings"]] == ["mirror_gap"]


def verified(receipt: Path, *mirrors: str) -> dict[str, Any]:
    """What the command says of a receipt."""
    asked = [part for place in mirrors for part in ("--mirror", place)]
    found = CliRunner().invoke(main, ["receipt", "verify", str(receipt), "--json", *asked])
    report: dict[str, Any] = json.loads(found.stdout)
    return report


def _is_booked(one: Organisation, workspace_id: str) -> bool:
    return one.spent(workspace_id)[1] == 0


def test_fees_are_booked_to_the_tinybar_and_reserved_until_then(
    pair: tuple[Organisation, Organisation, str], shared_network: StandIn
) -> None:
    ours, theirs, workspace_id = pair
    together(ours, theirs, workspace_id)
    topic = ours.ledger(workspace_id)["topic"]
    for one in (ours, theirs):
        until(partial(_is_booked, one, workspace_id))
        history = shared_network.state.history
        paid = -sum(entry.transfers.get(one.account, 0) for entry in history if entry.entity == topic)
        assert one.spent(workspace_id)[0] == paid
    seen = ours.admin.billing.credits().ledger_fees
    assert seen.tinybars is None, "only an operator sees the network's own money"
    assert seen.amount > 0
    assert seen.credits == pytest.approx(seen.amount * 1000)
    assert ours.admin.usage.get().ledger_fees == seen


def test_the_text_of_a_task_comes_to_the_other_organisation(shared_network: StandIn, tmp_path: Path) -> None:
    """A peer's key leads to it, in a file of its own; and until it is there, nothing else waits."""
    with organisations(shared_network, tmp_path, "ours", "theirs") as (ours, theirs):
        workspace_id = share(ours, theirs)
        wanted = task(ours, input={"topic": "Piers Gorman"})
        together(ours, theirs, workspace_id)
        assert theirs.ledger(workspace_id)["bodiesWanted"] > 0
        key = said(ours.operator.post(f"/workspaces/{workspace_id}/api-keys", json={"scopes": ["read"]}), 201)
        file = tmp_path / "peer.key"
        file.write_text(key["apiKey"])
        file.chmod(0o600)
        theirs.server.stop()
        peer = f'\n[[hedera.peers]]\nurl = "{ours.server.url}"\nkey_file = "{file}"\n'
        with again(theirs, tmp_path / "theirs", peer) as later:
            until(lambda: later.ledger(workspace_id)["bodiesWanted"] == 0)
            later.join(workspace_id)
            who = agent(later, "ada")
            claimed = later.admin.tasks.claim(wanted, who, with_task=True)
            assert isinstance(claimed, Claimed)
            assert claimed.task is not None
            assert claimed.task.input == {"topic": "Piers Gorman"}
            # What is claimed in the next moment is there with the claim: nobody asks twice.
            second = task(ours, input={"topic": "Another"})
            together(ours, later, workspace_id)
            claimed = later.admin.tasks.claim(second, who, with_task=True)
            assert isinstance(claimed, Claimed)
            assert claimed.task is not None
            assert claimed.task.input == {"topic": "Another"}


def test_a_server_that_is_killed_in_the_middle_does_each_request_once_and_books_every_fee(
    shared_network: StandIn, tmp_path: Path
) -> None:
    """Its callers repeat under their keys, at the server that comes back."""
    with organisations(shared_network, tmp_path, "ours") as (ours,):
        begun = said(ours.operator.post("/workspaces", json={"order": "network"}), 201)
        workspace_id = begun["workspaceId"]
        ours.enter(begun["apiKey"])
        ours.admin.queues.create("work")
        topic = ours.ledger(workspace_id)["topic"]
        sent = shared_network.state.topics[topic].messages
        before = len(sent)

        def create(url: str, number: int) -> int:
            headers = {"authorization": f"Bearer {begun['apiKey']}", "idempotency-key": f"once-{number}"}
            with httpx2.Client(base_url=url, headers=headers, timeout=60) as http:
                try:
                    return http.post("/queues/work/tasks", json={"title": f"Task {number}"}).status_code
                except httpx2.TransportError:
                    return 0

        with ThreadPoolExecutor(12) as threads:
            first = [threads.submit(create, ours.server.url, number) for number in range(12)]
            until(lambda: len(sent) > before)
            ours.server.stop(signal.SIGKILL)
            assert 0 in {one.result() for one in first}, "the server died before it had answered everybody"
            with again(ours, tmp_path / "ours", "") as later:
                repeat = partial(create, later.server.url)
                until(lambda: {*threads.map(repeat, range(12))} == {201})
                later.enter(begun["apiKey"])
                titles = [one.title for one in later.admin.tasks.list("work", state="available")]
                assert sorted(titles) == sorted(f"Task {number}" for number in range(12))
                history = shared_network.state.history
                paid = -sum(entry.transfers.get(later.account, 0) for entry in history if entry.entity == topic)
                # What was reserved and never sent is released once it can no longer be recorded.
                until(lambda: later.spent(workspace_id)[0] == paid)
        report = checked(later.server.data)
        assert report.clean, report.faults


def test_workers_of_the_sdk_work_through_a_queue_that_another_organisation_fills(
    pair: tuple[Organisation, Organisation, str],
) -> None:
    ours, theirs, _ = pair
    ours.admin.queues.create("shift")
    wanted = [ours.admin.tasks.create("shift", title=f"Task {number}").task_id for number in range(4)]
    until(lambda: any(one.queue_id == "queue_shift" for one in theirs.admin.queues.list()))
    done: list[str] = []

    @theirs.admin.worker(queue="shift", agent="shift-worker")
    def work(ctx: Any) -> dict[str, str]:
        done.append(ctx.task.task_id)
        return {"text": ctx.task.title}

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(theirs.admin.run)
        ended = ours.admin.tasks.wait(wanted, timeout=60)
        theirs.admin.stop()
        running.result(60)
    assert {one.state for one in ended} == {"completed"}
    assert sorted(done) == sorted(wanted), "each task was worked on once"
