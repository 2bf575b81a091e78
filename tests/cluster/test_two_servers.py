"""What happens at one server is true at the other: tasks, waiters, streams, keys, tokens, receipts."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx2
import psycopg
import pytest

from redkey.ledger.note import parse_key
from redkey.ledger.trust import TrustedKey
from redkey.ledger.verify import Policy, verify_receipt
from redkey.services.fsck.check import Fsck
from redkey.stores.opening import store_at
from tests.cluster.conftest import BURST, CONFIG, Pair
from tests.harness.acts import begin_queue, claim, create_task, head, register, until
from tests.harness.server import serving

pytestmark = pytest.mark.xdist_group("cluster")

PUSHED_SECONDS = 2.0


def test_a_task_lives_across_servers(pair: Pair) -> None:
    with pair.one.client() as one, pair.two.client() as two:
        assert one.get("/readyz").json["store"].startswith("PostgreSQL ")
        queue = begin_queue(one, "queue_life")
        agent, rival = (register(two, name)["agentId"] for name in ("Ada", "Bob"))
        task = create_task(one, queue)
        won = claim(two, task, agent)
        assert won["status"] == "claimed"
        lost = claim(one, task, rival)
        assert (lost["status"], lost["winningAgentId"]) == ("missed", agent)
        done = one.post(f"/claims/{won['claimId']}/complete", {"summary": "Written."})
        assert done.status == 200, done.text
        assert two.get(f"/tasks/{task}").json["state"] == "completed"


def test_a_waiter_is_woken_by_a_task_of_the_other_server(pair: Pair) -> None:
    with pair.one.client() as one, pair.two.client() as two, ThreadPoolExecutor(1) as pool:
        queue = begin_queue(one, "queue_wait")
        agent = register(one, "Waiter")["agentId"]
        body = {"agentId": agent, "leaseSeconds": 600, "wait": 30}
        waiting = pool.submit(two.post, f"/queues/{queue}/claim-next", body)
        until(lambda: "redkey_waiting 1" in httpx2.get(f"{pair.two.url}/metrics", timeout=60).text)
        task = create_task(one, queue)
        reply = waiting.result(60)
        assert (reply.json["status"], reply.json["taskId"]) == ("claimed", task)


def test_a_follower_sees_what_the_other_server_records(pair: Pair) -> None:
    with pair.one.client() as one:
        queue = begin_queue(one, "queue_follow")
        found, begun = threading.Event(), threading.Event()
        wanted: list[str] = []

        def follow() -> None:
            headers = {"authorization": f"Bearer {pair.two.key}"}
            with httpx2.stream("GET", f"{pair.two.url}/stream", headers=headers, timeout=60) as stream:
                begun.set()
                for line in stream.iter_lines():
                    if line.startswith("data:") and wanted and wanted[0] in line:
                        found.set()
                        return

        with ThreadPoolExecutor(1) as pool:
            following = pool.submit(follow)
            assert begun.wait(60)
            wanted.append(create_task(one, queue))
            following.result(60)
        assert found.is_set()


def test_keys_and_tokens_of_one_server_are_valid_at_the_other(pair: Pair) -> None:
    with pair.one.client() as one:
        path = f"/workspaces/{pair.one.workspace_id}/api-keys"
        made = one.post(path, {"scopes": ["read"], "name": "both"}).json
        with pair.two.client(made["apiKey"]) as reader:
            assert reader.get("/queues").status == 200
        prefix, _, secret = made["apiKey"].rpartition("_")
        token = httpx2.post(
            f"{pair.two.url}/oauth/token",
            data={"grant_type": "client_credentials"},
            auth=(prefix.removeprefix("rk_"), secret),
            timeout=60,
        ).json()["access_token"]
        with pair.one.client(token) as bearer:
            assert bearer.get("/queues").status == 200
        assert one.delete(f"{path}/{made['keyId']}").status in (200, 204)
        with pair.two.client(made["apiKey"]) as reader:
            # Pushed: a server reads a key that it trusts again after ten seconds only.
            until(lambda: reader.get("/queues").status == 401, PUSHED_SECONDS)


def test_a_receipt_of_either_server_verifies(pair: Pair) -> None:
    with ExitStack() as stack:
        one, two = (stack.enter_context(server.client()) for server in (pair.one, pair.two))
        queue = begin_queue(two, "queue_proof")
        task, agent = create_task(two, queue), register(two, "Prover")["agentId"]
        event = claim(one, task, agent)["eventId"]
        with psycopg.connect(pair.url) as connection:
            (public,) = connection.execute("SELECT public FROM redkey.secret WHERE name = 'signer/0001'").fetchall()[0]
        policy = Policy(keys=(TrustedKey(parse_key(public)),))
        for client in (one, two):
            verdict = verify_receipt(client.get(f"/events/{event}/receipt?format=proof").content, policy)
            assert verdict.holds("integrity", "signed"), verdict


def test_servers_know_how_many_they_are(pair: Pair) -> None:
    def alive() -> int:
        with psycopg.connect(pair.url) as connection:
            (count,) = connection.execute("SELECT count(*) FROM redkey.server").fetchall()[0]
            return int(count)

    until(lambda: alive() == 2)


def test_limits_are_divided_and_grow_back_when_a_server_is_lost(pair: Pair, tmp_path: Path) -> None:
    def bursts() -> set[str]:
        with pair.one.client() as one, pair.two.client() as two:
            replies = [client.get("/queues") for client in (one, two)]
        return {part for reply in replies for part in reply.headers["ratelimit-policy"].split(";") if part[:2] == "q="}

    until(lambda: bursts() == {f"q={BURST // 2}"})
    with serving(tmp_path, "--store", pair.url, environment=pair.environment, config=CONFIG) as third:
        until(lambda: bursts() == {f"q={BURST // 3}"})
        third.stop(signal.SIGKILL)
        with psycopg.connect(pair.url, autocommit=True) as connection:
            # Ten seconds later.
            aged = "UPDATE redkey.server SET seen = seen - interval '10 seconds' WHERE url = %s"
            connection.execute(aged, [third.url])
        until(lambda: bursts() == {f"q={BURST // 2}"})


def test_rules_are_not_raised_while_a_registered_server_does_not_know_them(pair: Pair) -> None:
    with psycopg.connect(pair.url, autocommit=True) as connection, pair.one.client() as client:
        path = f"/workspaces/{pair.one.workspace_id}"
        now = client.get(f"{path}/policy").json["rules"]
        # A server of an older version does not write the rules that it knows.
        connection.execute("INSERT INTO redkey.server (id, url, version) VALUES ('old', 'http://old:8700', '0.1')")
        behind = client.post(f"{path}/rules", {"rules": now})
        assert (behind.status, behind.json["code"]) == (409, "servers_behind")
        assert "http://old:8700 (0.1)" in behind.json["detail"]
        connection.execute("DELETE FROM redkey.server WHERE id = 'old'")
        known = client.post(f"{path}/rules", {"rules": now})
        assert known.json["code"] != "servers_behind"


def test_secrets_in_the_database_are_sealed(pair: Pair) -> None:
    with psycopg.connect(pair.url) as connection:
        rows = connection.execute("SELECT name, sealed FROM redkey.secret ORDER BY name").fetchall()
    assert [name for name, _ in rows] == ["issuing", "oauth/0001", "signer/0001"]
    assert not [name for name, sealed in rows if b"PRIVATE" in sealed]


def test_the_ledger_of_both_is_whole(pair: Pair) -> None:
    with pair.one.client() as one, pair.two.client() as two:
        queue = begin_queue(one, "queue_whole")
        tasks = [create_task(client, queue) for client in (one, two) * 4]
        recorded = head(one)
    with store_at(pair.url).inspect() as evidence:
        report = Fsck(evidence).run(())
    assert report.clean, report.faults
    assert report.figures["records"] >= recorded > len(tasks)
