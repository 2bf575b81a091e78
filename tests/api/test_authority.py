"""Streams, long polls and bus connections end within a second after their key or token ends."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import pytest

from redkey.stores.keys import SignerKeys
from tests.api.conftest import Workspace
from tests.api.test_keys_and_tokens import token_for
from tests.harness.acts import begin_queue, create_task, gauge, register, until
from tests.harness.client import Client
from tests.harness.server import Server

PROMPT_SECONDS = 1.0
# Other processes of the machine make an end late now and then; what the server does late is late every time.
ROUNDS = 5
SESSION = "room"


class Open:
    """A request that stays open: a thread reads it and records when it ended."""

    def __init__(self, server: Server, credential: str, method: str, path: str, body: Any = None) -> None:
        place = urlsplit(server.url)
        self._connection = HTTPConnection(str(place.hostname), place.port, timeout=30)
        headers = {"authorization": f"Bearer {credential}", "content-type": "application/json"}
        self._connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        self.status, self.content, self.ended_at = 0, b"", 0.0
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        response: HTTPResponse = self._connection.getresponse()
        self.status = response.status
        while chunk := response.read1():
            self.content += chunk
        self.ended_at = time.monotonic()
        self._connection.close()

    @property
    def is_open(self) -> bool:
        return not self.ended_at

    def seconds_after(self, moment: float) -> float:
        """Return the seconds between a moment and the end."""
        self._reading.join(20)
        assert self.ended_at, f"still open: {self.content[-200:]!r}"
        return self.ended_at - moment


def short_token(server: Server, key: str, seconds: float) -> str:
    """Return a token like those of the server, with a shorter lifetime than any setting allows."""
    header, payload, _ = token_for(server, key).json()["access_token"].split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    claims["exp"] = int(time.time() + seconds) + 1
    signed = f"{header}.{_pack(json.dumps(claims, separators=(',', ':')).encode())}"
    (signer,) = SignerKeys(server.data / "keys" / "oauth", f"{claims['aud']}/oauth").signers()
    return f"{signed}.{_pack(signer.sign_bytes(signed.encode()))}"


def _pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Scene:
    """A workspace with a queue, an agent that has a role and a key, and a bus session."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace, self.admin, self.server = workspace, workspace.admin, workspace.server
        begin_queue(self.admin)
        self.role_id = self.admin.post("/roles", {"name": "Reader"}).json["id"]
        self.agent_id = register(self.admin)["agentId"]
        assert self.admin.post(f"/roles/{self.role_id}/agents/{self.agent_id}").status == 200
        self.key = workspace.key("agent", agent_id=self.agent_id)
        made = self.admin.http.post("/api/sessions", json={"id": f"{SESSION}-{workspace.workspace_id[-8:]}"})
        assert made.status_code in (200, 201), made.text
        self.session = made.json()["id"]

    def open_all(self, credential: str) -> dict[str, Open]:
        """Open one request of each long-lived kind, with one credential."""
        waits = {"agentId": self.agent_id, "wait": 25}
        kinds: dict[str, tuple[str, str, Any]] = {
            "stream": ("GET", "/stream", None),
            "claim-next": ("POST", "/queues/queue_q/claim-next", waits),
            "available": ("GET", f"/queues/queue_q/tasks/available?agentId={self.agent_id}&wait=25", None),
            "bus stream": ("GET", f"/api/sessions/{self.session}/events/stream", None),
            "bus sessions": ("GET", "/api/sessions/stream", None),
            "bus poll": ("GET", f"/api/sessions/{self.session}/events?after=100000&wait=25", None),
        }
        opened = {name: Open(self.server, credential, *asked) for name, asked in kinds.items()}
        until(lambda: opened["stream"].content and opened["bus stream"].content)
        until(lambda: gauge(self.server.url, "redkey_waiting") >= 1)
        until(lambda: gauge(self.server.url, "redkey_subscribers") >= 2)
        assert all(one.is_open for one in opened.values()), {name: one.content for name, one in opened.items()}
        return opened


@pytest.fixture
def scene(server: Server, operator: Client) -> Iterator[Callable[[], Scene]]:
    """Creates scenes, each in its own workspace."""
    made: list[Workspace] = []

    def begin() -> Scene:
        made.append(Workspace(server, operator.post("/workspaces", {}).json))
        return Scene(made[-1])

    yield begin
    for workspace in made:
        workspace.close()


def all_end_soon(end_all: Callable[[], dict[str, float]]) -> None:
    """Check that in some round everything ends in time; a round returns how long each end took."""
    told = []
    for _ in range(ROUNDS):
        told.append(end_all())
        if max(told[-1].values()) <= PROMPT_SECONDS:
            return
    raise AssertionError(f"something ended late in every round: {told}")


def ends(opened: dict[str, Open], moment: float) -> dict[str, float]:
    return {name: one.seconds_after(moment) for name, one in opened.items()}


def revoke_key(scene: Scene) -> None:
    path = f"/workspaces/{scene.workspace.workspace_id}/api-keys/{scene.key['keyId']}"
    assert scene.admin.delete(path).status == 200


def deactivate(scene: Scene) -> None:
    assert scene.admin.post(f"/agents/{scene.agent_id}/deactivate").status == 200


def make_inactive(scene: Scene) -> None:
    assert scene.admin.patch(f"/agents/{scene.agent_id}", {"active": False}).status == 200


def remove_role(scene: Scene) -> None:
    assert scene.admin.delete(f"/roles/{scene.role_id}/agents/{scene.agent_id}").status == 200


@pytest.mark.parametrize("end", [revoke_key, deactivate, make_inactive, remove_role])
def test_what_is_open_ends_with_its_authority(scene: Callable[[], Scene], end: Callable[[Scene], None]) -> None:
    def end_all() -> dict[str, float]:
        here = scene()
        opened = here.open_all(here.key["apiKey"])
        moment = time.monotonic()
        end(here)
        create_task(here.admin)
        took = ends(opened, moment)
        assert b"task.created" not in opened["stream"].content, "an event that came after the end was sent"
        assert opened["claim-next"].status in (200, 401)
        assert b'"claimed"' not in opened["claim-next"].content
        return took

    all_end_soon(end_all)


def test_what_a_token_opened_ends_when_the_token_does(scene: Callable[[], Scene]) -> None:
    def end_all() -> dict[str, float]:
        here = scene()
        # Long enough for a busy machine to open everything before the token ends.
        token = short_token(here.server, here.key["apiKey"], 8)
        ends_at = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["exp"]
        opened = here.open_all(token)
        moment = time.monotonic() + ends_at - time.time()
        took = ends(opened, moment)
        assert opened["claim-next"].status == 401
        assert opened["available"].status == 401
        return took

    all_end_soon(end_all)


def test_claims_of_other_agents_stay_active(scene: Callable[[], Scene]) -> None:
    def end_all() -> dict[str, float]:
        here = scene()
        other = here.workspace.key("read")
        opened = Open(here.server, other["apiKey"], "GET", "/stream")
        until(lambda: opened.content)
        for end in (remove_role, make_inactive, revoke_key):
            end(here)
        until(lambda: b"key.revoked" in opened.content)
        assert opened.is_open
        moment = time.monotonic()
        here.admin.delete(f"/workspaces/{here.workspace.workspace_id}/api-keys/{other['keyId']}")
        return {"stream": opened.seconds_after(moment)}

    all_end_soon(end_all)


def test_what_another_process_revoked_ends_here(start: Callable[..., Server]) -> None:
    first, second = start(), start(name="second")
    with first.client() as one, second.client() as two:

        def end_all() -> dict[str, float]:
            path = f"/workspaces/{first.workspace_id}/api-keys"
            made = one.post(path, {"scopes": ["read"]}).json
            opened = Open(first, made["apiKey"], "GET", "/stream")
            until(lambda: opened.content)
            moment = time.monotonic()
            assert two.delete(f"{path}/{made['keyId']}").status == 200
            return {"stream": opened.seconds_after(moment)}

        all_end_soon(end_all)
