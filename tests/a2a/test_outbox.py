"""One outbox for webhooks and A2A push: at least once, in order, signed; a dead receiver holds up nobody."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from a2a.types import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import TaskNotFoundError
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from redkey.config import Outbox as Settings
from redkey.readmodel.deliveries import DUE, PARKED, Delivery
from redkey.services.outbox import after_failure
from tests.a2a.receiver import Got, Receiver, receiving
from tests.a2a.returning import returning
from tests.a2a.scene import refused
from tests.a2a.talk import GRPC, TRANSPORTS, Worker, talking
from tests.cli.mistakes import invoke
from tests.harness import acts
from tests.harness.client import Client
from tests.harness.server import Server, begin, serving

CONFIG = GRPC + "[outbox]\nallow_private = true\nretry_seconds = 0.05\nlongest_seconds = 0.2\nattempts = 4\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("outbox"), config=CONFIG) as running:
        yield running


@pytest.fixture
def owner(server: Server) -> Iterator[Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def create(owner: Client, receiver: Receiver, *types: str) -> dict[str, str]:
    reply = owner.post("/webhooks", {"receiverUrl": receiver.url, "types": list(types)})
    assert reply.status == 201, reply.text
    found: dict[str, str] = reply.json
    return found


def verified(got: Got, secret: str, server: Server) -> None:
    """Both signatures of a request hold, as Standard Webhooks makes them."""
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    found = dict(one.split(",", 1) for one in got.headers["webhook-signature"].split(" "))
    if secret:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        assert found["v1"] == base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    (jwk,) = httpx2.get(f"{server.url}/.well-known/jwks.json").json()["keys"]
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(jwk["x"] + "="))
    public.verify(base64.b64decode(found["v1a"]), signed)


def test_a_webhook_gets_the_chosen_events_in_order_and_signed(
    server: Server, owner: Client, receiver: Receiver
) -> None:
    created = create(owner, receiver, "task.created", "task.cancelled")
    acts.begin_queue(owner, "queue_hooks")
    made = [acts.create_task(owner, "queue_hooks") for _ in range(5)]
    owner.post(f"/tasks/{made[0]}/cancel", {})
    got = receiver.wait(6)
    assert [one.json["data"]["taskId"] for one in got] == [*made, made[0]]
    assert got[-1].json["type"] == "task.cancelled"
    assert got[0].json == owner.get(f"/events/{got[0].json['eventId']}").json
    for one in got:
        verified(one, created["secret"], server)
    acts.until(lambda: _shown(owner, created)["delivered"] == 6)
    shown = _shown(owner, created)
    assert (shown["state"], shown["kind"]) == ("waiting", "webhook")
    assert owner.delete(f"/webhooks/{created['webhookId']}").json["status"] == "removed"
    assert owner.get(f"/webhooks/{created['webhookId']}").status == 404
    acts.create_task(owner, "queue_hooks")
    assert len(receiver.got) == 6


def _shown(owner: Client, created: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = owner.get(f"/webhooks/{created['webhookId']}").json
    return found


def test_a_dead_receiver_is_parked_visible_and_resumed_and_holds_up_nobody(owner: Client, receiver: Receiver) -> None:
    acts.begin_queue(owner, "queue_dead")
    with receiving() as dead:
        dead.status = 500
        broken = create(owner, dead, "task.created")
        healthy = create(owner, receiver, "task.created")
        first = acts.create_task(owner, "queue_dead")
        assert receiver.wait(1)[0].json["data"]["taskId"] == first
        acts.until(lambda: _shown(owner, broken)["state"] == "parked")
        shown = _shown(owner, broken)
        assert (shown["attempts"], shown["lastError"]) == (4, "status 500")
        listed = owner.get("/webhooks?kind=webhook").json["items"]
        assert {one["webhookId"]: one["state"] for one in listed}[broken["webhookId"]] == "parked"
        second = acts.create_task(owner, "queue_dead")
        receiver.wait(2)
        assert dead.refused == 4
        dead.status = 200
        assert owner.post(f"/webhooks/{healthy['webhookId']}/resume", {}).status == 409
        assert owner.post(f"/webhooks/{broken['webhookId']}/resume", {}).json["status"] == "resumed"
        assert [one.json["data"]["taskId"] for one in dead.wait(2)] == [first, second]
    for one in (broken, healthy):
        owner.delete(f"/webhooks/{one['webhookId']}")


def test_the_pause_after_each_failure_doubles_up_to_the_longest() -> None:
    settings = Settings(retry_seconds=1.0, longest_seconds=10.0, attempts=8)
    delivery, now, waits = Delivery("whk_1", 7, delivered=3), 1_700_000_000_000_000_000, []
    for _ in range(7):
        delivery = after_failure(delivery, "status 503", now, settings)
        waits.append((delivery.next_at - now) / 1e9)
        now = delivery.next_at
    for wait, expected in zip(waits, (1, 2, 4, 8, 10, 10, 10), strict=True):
        assert expected * 0.8 <= wait <= expected * 1.2, waits
    assert (delivery.state, delivery.sequence, delivery.delivered, delivery.attempts) == (DUE, 7, 3, 7)
    assert delivery.last_error == "status 503"
    last = after_failure(delivery, "status 503", now, settings)
    assert (last.state, last.attempts, last.next_at, last.sequence) == (PARKED, 8, 0, 7)
    # Receivers that failed at the same moment are called at different ones.
    assert len({after_failure(delivery, "x", now, Settings()).next_at for _ in range(20)}) > 10


def test_a_receiver_that_is_gone_is_parked_at_once_and_managed_by_command(server: Server, owner: Client) -> None:
    acts.begin_queue(owner, "queue_gone")
    account = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    with receiving() as gone:
        gone.status = 410
        reply = invoke("webhook", "create", gone.url, "--type", "task.created", "--json", **account)
        created = json.loads(reply.output)
        task_id = acts.create_task(owner, "queue_gone")
        acts.until(lambda: _shown(owner, created)["state"] == "parked")
        shown = _shown(owner, created)
        assert (shown["lastError"], shown["attempts"], gone.refused) == ("status 410", 1, 1)
        listed = invoke("webhook", "list", **account).output
        assert [word for word in ("parked", "status 410") if word not in listed] == []
        gone.status = 204
        resumed = invoke("webhook", "resume", created["webhookId"], **account)
        assert (resumed.exit_code, resumed.output) == (0, f"{created['webhookId']} is retried\n")
        assert gone.wait(1)[0].json["data"]["taskId"] == task_id
    again = invoke("webhook", "resume", created["webhookId"], **account)
    assert (again.exit_code, "not parked" in again.output) == (1, True), again.output
    removed = invoke("webhook", "remove", created["webhookId"], **account)
    assert (removed.exit_code, "gets no more events" in removed.output) == (0, True), removed.output
    assert owner.get(f"/webhooks/{created['webhookId']}").status == 404
    missing = invoke("webhook", "resume", created["webhookId"], **account)
    assert missing.exit_code == 1


def test_a_parked_push_config_is_resumed(server: Server, owner: Client) -> None:
    worker = Worker(owner)
    acts.begin_queue(owner, "queue_pushed")
    task_id = acts.create_task(owner, "queue_pushed")
    with receiving() as dead:
        dead.status = 500
        place = f"{server.url}/a2a/tasks/{task_id}/pushNotificationConfigs"
        headers = {"authorization": f"Bearer {server.key}", "a2a-version": "1.0"}
        assert httpx2.post(place, json={"url": dead.url, "id": "mine"}, headers=headers).status_code == 200
        worker.take(task_id)

        def shown() -> dict[str, Any]:
            every = owner.get("/webhooks?kind=push&limit=500").json["items"]
            (found,) = [one for one in every if one["taskId"] == task_id]
            return dict(found)

        acts.until(lambda: shown()["state"] == "parked")
        webhook = f"/webhooks/{shown()['webhookId']}"
        assert owner.get(webhook).json == shown()
        dead.status = 200
        assert owner.post(f"{webhook}/resume", {}).json["status"] == "resumed"
        assert "statusUpdate" in dead.wait(1)[0].json
        worker.complete(summary="Done.")
        acts.until(lambda: shown()["state"] == "ended")
        assert owner.post(f"{webhook}/resume", {}).status == 409
        assert owner.delete(webhook).json["status"] == "removed"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_push_notifications_are_set_delivered_and_removed(
    server: Server, owner: Client, receiver: Receiver, transport: str
) -> None:
    async def run() -> None:
        worker = Worker(owner)
        async with talking(server, transport) as talk:
            config = TaskPushNotificationConfig(
                url=receiver.url,
                token="tok-1",
                authentication=AuthenticationInfo(scheme="Bearer", credentials="opensesame"),
            )
            task = await talk.send(configuration={"task_push_notification_config": config})
            kept = await talk.client.list_task_push_notification_configs(
                ListTaskPushNotificationConfigsRequest(task_id=task.id), context=talk.context()
            )
            (one,) = kept.configs
            assert (one.url, one.token, one.task_id) == (receiver.url, "tok-1", task.id)
            again = await talk.client.get_task_push_notification_config(
                GetTaskPushNotificationConfigRequest(task_id=task.id, id=one.id), context=talk.context()
            )
            assert again == one
            second = await talk.client.create_task_push_notification_config(
                TaskPushNotificationConfig(task_id=task.id, id="mine", url=receiver.url), context=talk.context()
            )
            assert second.id == "mine"
            for _ in range(2):
                await talk.client.delete_task_push_notification_config(
                    DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="mine"), context=talk.context()
                )
            gone = GetTaskPushNotificationConfigRequest(task_id=task.id, id="mine")
            call = talk.client.get_task_push_notification_config(gone, context=talk.context())
            await refused(TaskNotFoundError, call)
            await asyncio.to_thread(worker.take, task.id)
            await asyncio.to_thread(worker.artifact, name="report", content="x")
            await asyncio.to_thread(worker.complete, summary="Done.")
        got = await asyncio.to_thread(receiver.wait, 3)
        assert [next(iter(one.json)) for one in got] == ["statusUpdate", "artifactUpdate", "statusUpdate"]
        states = [got[index].json["statusUpdate"]["status"]["state"] for index in (0, 2)]
        assert states == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
        for one in got:
            assert one.headers["x-a2a-notification-token"] == "tok-1"
            assert one.headers["authorization"] == "Bearer opensesame"
            verified(one, "", server)
        await asyncio.to_thread(acts.until, lambda: _ended(owner, task.id))
        assert len(receiver.got) == 3

    asyncio.run(run())


def _ended(owner: Client, task_id: str) -> bool:
    found = [one for one in owner.get("/webhooks?kind=push&limit=500").json["items"] if one.get("taskId") == task_id]
    return [one["state"] for one in found] == ["ended"]


def test_nothing_is_lost_when_the_server_is_killed(tmp_path: Path, receiver: Receiver) -> None:
    receiver.status = 503
    config = CONFIG.replace("attempts = 4", "attempts = 100000")
    server = begin(tmp_path, config=config)
    try:
        with server.client() as owner:
            create(owner, receiver, "task.created")
            acts.begin_queue(owner)
            made = [acts.create_task(owner) for _ in range(3)]
        receiver.wait(1, refused=True)
    finally:
        server.process.kill()
        server.process.wait()
    receiver.status = 200
    with serving(tmp_path, config=config):
        got = receiver.wait(3)
    assert [one.json["data"]["taskId"] for one in got] == made


def test_a_kill_between_deliveries_repeats_at_most_the_one_under_way(tmp_path: Path, receiver: Receiver) -> None:
    # The receiver has taken the request, and the server is killed before it has the answer.
    held = (1, 4, 8)
    with returning(tmp_path, config=CONFIG + "answer_seconds = 60.0\n") as servers:
        receiver.hold_at = held[0]
        with servers.last.client() as owner:
            create(owner, receiver, "task.created")
            acts.begin_queue(owner)
            made = [acts.create_task(owner) for _ in range(8)]
        for count, following in zip(held, (*held[1:], 0), strict=True):
            receiver.wait(count)
            servers.kill()
            receiver.release(until=following)
            servers.start()
        got = receiver.wait(len(made) + len(held))
    ids = [one.headers["webhook-id"] for one in got]
    assert [one.json["data"]["taskId"] for one in {one.headers["webhook-id"]: one for one in got}.values()] == made
    # Each copy follows its original directly, so what a receiver has not seen is always in order.
    assert [index + 1 for index in range(len(ids) - 1) if ids[index] == ids[index + 1]] == list(held)
    assert len(set(ids)) == len(ids) - len(held)


# Ends the server when it has recorded a removal: before it keeps an answer, and before it sends one.
_ENDING = """
import os
from redkey.api import adapter
from redkey.http.exchange import Exchange
from redkey.services import repeats

send = Exchange.reply


def reply(self, *given):
    if self.method == "DELETE":
        os._exit(3)
    return send(self, *given)


def ending(work):
    def end(call, *given):
        if call.exchange.method == "DELETE":
            os._exit(3)
        return work(call, *given)

    return end


Exchange.reply = reply
repeats.keep, repeats.kept = ending(repeats.keep), ending(repeats.kept)
"""


@pytest.mark.parametrize("kind", ["webhook", "push"])
def test_a_removal_is_answered_again_after_a_crash(tmp_path: Path, receiver: Receiver, kind: str) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "sitecustomize.py").write_text(_ENDING)
    removal = {"idempotency-key": "r-1"}
    with serving(tmp_path, config=CONFIG, environment={"PYTHONPATH": str(planted)}) as server:
        with server.client() as owner:
            place = f"/webhooks/{create(owner, receiver, 'task.created')['webhookId']}"
            if kind == "push":
                acts.begin_queue(owner)
                config = f"{server.url}/a2a/tasks/{acts.create_task(owner)}/pushNotificationConfigs"
                headers = {"authorization": f"Bearer {server.key}", "a2a-version": "1.0"}
                assert httpx2.post(config, json={"url": receiver.url}, headers=headers).status_code == 200
                (push,) = owner.get("/webhooks?kind=push").json["items"]
                place = f"/webhooks/{push['webhookId']}"
            with pytest.raises(httpx2.TransportError):
                owner.request("DELETE", place, headers=removal)
        assert server.process.wait(60) == 3
    with serving(tmp_path, config=CONFIG) as server, server.client() as owner:
        assert owner.get(place).status == 404
        reply = owner.request("DELETE", place, headers=removal)
        assert (reply.status, reply.json["status"]) == (200, "removed")
        assert owner.request("DELETE", place, headers=removal).json == reply.json
        assert owner.request("DELETE", place, headers={"idempotency-key": "r-2"}).status == 404


def test_urls_that_a_server_must_not_call_are_refused(tmp_path: Path) -> None:
    refused = ("http://example.com/x", "https://127.0.0.1/x", "https://[::1]/x", "https://10.0.0.1/x")
    refused += ("https://localhost/x", "https://LocalHost./x", "https://x.localhost/", "https://ip6-localhost/")
    config = '[outbox]\nhosts = [".example.com", "localhost", "x.localhost", "ip6-localhost"]\n'
    with serving(tmp_path, config=config) as strict, strict.client() as owner:
        for url in (*refused, "https://hooks.example.com:22/", "https://example.org/x"):
            reply = owner.post("/webhooks", {"receiverUrl": url})
            assert (reply.status, reply.json["code"]) == (422, "url_refused"), url
        assert owner.get("/webhooks").json["items"] == []
        assert owner.post("/webhooks", {"receiverUrl": "https://hooks.example.com/x"}).status == 201
