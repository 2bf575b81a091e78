"""An answered request, repeated after any other acts, gives the same bytes.

A seeded walk sends every kind of request that takes an idempotency key, each under a key of its own, and repeats those
that were answered with 2xx at random later moments, from another process, and after a restart of the server. Two other
answers are allowed: a repeat whose text was erased meanwhile says so, and so does one whose key has left the window.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.harness.acts import CARD, head, until
from tests.harness.client import Client, Reply, contract
from tests.harness.server import Server

LONG = bool(os.environ.get("REDKEY_TEST_LONG"))
ACTS = 3000 if LONG else 200
SEEDS = range(20) if LONG else range(1)
PLAN = {
    "version": "1.0",
    "name": "episode",
    "roles": {"writer": {"description": "Writes."}},
    "tasks": [
        {
            "id": "research",
            "title": "Research",
            "role": "writer",
            "dependsOn": [],
            "outputs": ["notes"],
            "completionCriteria": ["Sources are named"],
        },
        {
            "id": "draft",
            "title": "Draft",
            "role": "writer",
            "dependsOn": ["research"],
            "outputs": ["text"],
            "completionCriteria": ["It reads well"],
            "approvalGate": True,
        },
    ],
    "policies": {"maxParallelTasks": 2, "retry": {"maxAttempts": 3, "onFailure": "reopen"}},
}
GATED_PLAN = {**PLAN, "name": "gated", "tasks": [{**PLAN["tasks"][1], "dependsOn": []}]}  # type: ignore[index]


class Sent(NamedTuple):
    """A request that was answered with 2xx, and its answer."""

    method: str
    path: str
    body: Any
    key: str
    # Who sent it: an admin, a second one who judges what the first did, or the operator of the server.
    by: str
    status: int
    content: bytes


class Walk:
    """One random walk through the API by one admin, with all answers."""

    def __init__(self, server: Server, keys: dict[str, str], workspace_id: str, seed: int) -> None:
        self._keys = keys
        self.callers = {by: server.client(key) for by, key in keys.items()}
        self.workspace_id, self.random = workspace_id, random.Random(seed)
        self.sent: list[Sent] = []
        self.seen: set[str] = set()
        self.ids: dict[str, list[str]] = {}
        self._count = 0

    @property
    def client(self) -> Client:
        return self.callers["admin"]

    def move(self, server: Server) -> None:
        """Continue at another server."""
        self.close()
        self.callers = {by: server.client(key) for by, key in self._keys.items()}

    def close(self) -> None:
        for caller in self.callers.values():
            caller.close()

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, method: str, path: str, body: Any = None, *, by: str = "admin") -> Reply:
        self._count += 1
        key = f"walk-{self._count}"
        reply = self.request(method, path, body, key, by=by)
        if reply.status < 300:
            self.sent.append(Sent(method, path, body, key, by, reply.status, reply.content))
            self.seen.add(f"{method} {self.template(path)}")
        return reply

    def request(self, method: str, path: str, body: Any, key: str, *, by: str = "admin") -> Reply:
        options = {} if body is None else {"json": body}
        return self.callers[by].request(method, path, headers={"idempotency-key": key}, **options)

    def template(self, path: str) -> str:
        """Return the path as the OpenAPI document writes it."""
        document = contract(self.client.url)
        return next(template for pattern, template in document.paths if pattern.fullmatch(path))

    @property
    def unseen(self) -> set[str]:
        """Return the operations that accept a key and got no 2xx yet, except those of the bus."""
        keyed = {
            f"{method.upper()} {path}"
            for path, operations in contract(self.client.url).document["paths"].items()
            for method, operation in operations.items()
            if not path.startswith("/api/")
            and any(one.get("name") == "Idempotency-Key" for one in operation.get("parameters", ()))
        }
        return keyed - self.seen - NOT_WALKED

    def know(self, kind: str, name: str) -> None:
        self.ids.setdefault(kind, []).append(name)

    def one(self, kind: str) -> str:
        """Return an id of a kind; an unused one if none is known."""
        known = self.ids.get(kind)
        return self.random.choice(known[-12:]) if known else f"{kind}_none"

    def repeat(self, sent: Sent, *refusals: str) -> str:
        """Send a request again: the code of its refusal, when it is one of these, or "" for the same bytes."""
        reply = self.request(sent.method, sent.path, sent.body, sent.key, by=sent.by)
        if reply.status == 410 and reply.json["code"] in ("answer_erased", *refusals):
            return str(reply.json["code"])
        assert (reply.status, reply.content) == (sent.status, sent.content), f"{sent.method} {sent.path} {sent.body}"
        return ""


def _begin(walk: Walk) -> None:
    """Create the entities that most acts need."""
    for name in ("Writer", "Editor"):
        walk.know("role", walk.send("POST", "/roles", {"name": name}).json["id"])
    for name in ("alpha", "beta"):
        walk.know("queue", walk.send("POST", "/queues", {"name": name}).json["queueId"])
    for name in ("Ada", "Bob", "Cy"):
        _register(walk, name)


def _register(walk: Walk, name: str) -> None:
    reply = walk.send("POST", "/agents/register-card", {"agentCard": {**CARD, "name": name}, "issueKey": True})
    if reply.status == 201:
        walk.know("agent", reply.json["agentId"])


def _create_task(walk: Walk) -> None:
    body: dict[str, Any] = {"title": f"Task {walk.random.random()}", "input": {"n": walk.random.randrange(9)}}
    if walk.random.random() < 0.3:
        body["dependsOn"] = [walk.one("task")]
    if walk.random.random() < 0.3:
        body["requiredRoles"] = ["writer"]
    reply = walk.send("POST", f"/queues/{walk.one('queue')}/tasks", body)
    if reply.status == 201:
        walk.know("task", reply.json["taskId"])


def _create_batch(walk: Walk) -> None:
    tasks = [{"title": f"Batched {index}"} for index in range(3)]
    reply = walk.send("POST", f"/queues/{walk.one('queue')}/tasks/batch", {"tasks": tasks})
    if reply.status < 300:
        for item in reply.json["items"]:
            if "task" in item:
                walk.know("task", item["task"]["taskId"])


def _claim(walk: Walk) -> None:
    body = {"agentId": walk.one("agent"), "withTask": walk.random.random() < 0.5, "leaseSeconds": 600}
    reply = walk.send("POST", f"/tasks/{walk.one('task')}/claim", body)
    _note_claim(walk, reply)


def _claim_next(walk: Walk) -> None:
    body: dict[str, Any] = {"agentId": walk.one("agent")}
    if walk.random.random() < 0.3:
        body["count"] = 2
    _note_claim(walk, walk.send("POST", f"/queues/{walk.one('queue')}/claim-next", body))


def _note_claim(walk: Walk, reply: Reply) -> None:
    if reply.status == 200:
        for claimed in reply.json.get("claims", [reply.json]):
            if claimed.get("status") == "claimed":
                walk.know("claim", claimed["claimId"])


def _on_claim(verb: str, body: Callable[[Walk], Any] = lambda walk: {}) -> Callable[[Walk], None]:
    def act(walk: Walk) -> None:
        reply = walk.send("POST", f"/claims/{walk.one('claim')}/{verb}", body(walk))
        if reply.status < 300 and isinstance(reply.json.get("next"), dict):
            _note_claim(walk, reply)

    return act


def _completion(walk: Walk) -> dict[str, Any]:
    body: dict[str, Any] = {"output": {"said": walk.random.random()}, "notes": f"note {walk.random.random()}"}
    if walk.random.random() < 0.5:
        body["claimNext"] = {"queueId": walk.one("queue")}
    return body


def _complete_many(walk: Walk) -> None:
    walk.send("POST", "/claims/complete", {"claims": [{"claimId": walk.one("claim")} for _ in range(2)]})


def _on_task(verb: str, body: Callable[[Walk], Any] = lambda walk: {}) -> Callable[[Walk], None]:
    def act(walk: Walk) -> None:
        walk.send("POST", f"/tasks/{walk.one('task')}/{verb}", body(walk))

    return act


def _mail(walk: Walk) -> None:
    to = walk.random.choice(["human", walk.one("agent"), walk.one("role")])
    reply = walk.send("POST", "/inbox", {"to": to, "subject": "s", "body": f"b {walk.random.random()}"})
    if reply.status == 201:
        walk.know("message", reply.json["messageId"])


def _read_mail(walk: Walk) -> None:
    walk.send("POST", f"/inbox/{walk.one('message')}/read")


def _grant(walk: Walk) -> None:
    method = walk.random.choice(["POST", "POST", "DELETE"])
    walk.send(method, f"/roles/{walk.one('role')}/agents/{walk.one('agent')}")


def _update_agent(walk: Walk) -> None:
    walk.send("PATCH", f"/agents/{walk.one('agent')}", {"active": walk.random.random() < 0.7})


def _update_queue(walk: Walk) -> None:
    walk.send("PATCH", f"/queues/{walk.one('queue')}", {"paused": walk.random.random() < 0.3})


def _start_workflow(walk: Walk) -> None:
    reply = walk.send("POST", "/workflows", {"plan": PLAN, "queueId": walk.one("queue"), "input": {"a": 1}})
    if reply.status == 201:
        walk.know("workflow", reply.json["workflowId"])
        for task in walk.client.get(f"/workflows/{reply.json['workflowId']}/state").json["tasks"]:
            if task["state"] == "available":
                walk.know("task", task["taskId"])


def _on_workflow(walk: Walk) -> None:
    verb = walk.random.choice(["pause", "resume", "resume", "cancel"])
    walk.send("POST", f"/workflows/{walk.one('workflow')}/{verb}")


def _definition(walk: Walk) -> None:
    verb = walk.random.randrange(5)
    where = f"/workflow-definitions/{walk.one('definition')}"
    if verb == 0:
        reply = walk.send("POST", "/workflow-definitions", {"plan": PLAN})
        if reply.status == 201:
            walk.know("definition", reply.json["definitionId"])
    elif verb == 1:
        plan = {**PLAN, "name": f"episode {walk.random.random()}"}
        walk.send("PATCH", where, {"plan": plan, "revision": walk.random.randrange(1, 4)})
    elif verb == 2:
        walk.send("POST", f"{where}/versions", {"plan": PLAN})
    elif verb == 3:
        walk.send("POST", f"{where}/publish")
    else:
        walk.send("POST", "/workflow-definitions/validate", {"plan": PLAN})


def _key(walk: Walk) -> None:
    where = f"/workspaces/{walk.workspace_id}/api-keys"
    if walk.random.random() < 0.7:
        walk.know("key", walk.send("POST", where, {"scopes": ["read"], "name": "reader"}).json["keyId"])
    else:
        walk.send("DELETE", f"{where}/{walk.one('key')}")


def _agent_key(walk: Walk) -> None:
    body = {"scopes": ["agent"], "agentId": walk.one("agent")}
    walk.send("POST", f"/workspaces/{walk.workspace_id}/api-keys", body)


def _heartbeat(walk: Walk) -> None:
    walk.send("POST", f"/agents/{walk.one('agent')}/heartbeat", {"capacity": walk.random.randrange(3)})


def _gate(walk: Walk) -> None:
    gates = walk.client.get("/gates?state=open").json["items"]
    if gates:
        gate = walk.random.choice(gates)
        verb = walk.random.choice(["approve", "reject"])
        walk.send("POST", f"/gates/{gate['gateId']}/{verb}", {"note": "said"}, by="judge")


def _gated_work(walk: Walk, agent_id: str, queue_id: str) -> None:
    """Create and complete a task with an output and a gate, which random acts rarely do."""
    body = {"title": "Gated", "outputs": ["text"], "approvalGate": True, "retry": {"maxAttempts": 3}}
    task_id = walk.send("POST", f"/queues/{queue_id}/tasks", body).json["taskId"]
    walk.know("task", task_id)
    claimed = walk.send("POST", f"/tasks/{task_id}/claim", {"agentId": agent_id, "withTask": True}).json
    if claimed["status"] == "claimed":
        walk.send("POST", f"/claims/{claimed['claimId']}/artifacts", {"name": "text", "content": "words"})
        walk.send("POST", f"/claims/{claimed['claimId']}/complete", {"output": {"n": 1}})


def _gated_run(walk: Walk, agent_id: str, queue_id: str, verb: str) -> None:
    """A run whose task has a gate, done up to the gate; the gate is decided by the name of the task in its plan."""
    walk.send("POST", f"/roles/role_writer/agents/{agent_id}")
    started = walk.send("POST", "/workflows", {"plan": GATED_PLAN, "queueId": queue_id})
    if started.status != 201:
        return
    where = f"/workflows/{started.json['workflowId']}"
    task_id = walk.client.get(f"{where}/state").json["tasks"][0]["taskId"]
    claimed = walk.send("POST", f"/tasks/{task_id}/claim", {"agentId": agent_id}).json
    if claimed.get("status") == "claimed":
        walk.send("POST", f"/claims/{claimed['claimId']}/artifacts", {"name": "text", "content": "words"})
        walk.send("POST", f"/claims/{claimed['claimId']}/complete", {"output": {"n": 1}})
        walk.send("POST", f"{where}/gates/draft/{verb}", {"note": "said"}, by="judge")


def _bill(walk: Walk) -> None:
    """The operator, whose key is of another workspace, grants credits and sets prices."""
    if walk.random.random() < 0.5:
        grant = {"workspaceId": walk.workspace_id, "amount": 10**6 + walk.random.randrange(9)}
        walk.send("POST", "/billing/credits", grant, by="operator")
    else:
        prices = {"workspaceId": walk.workspace_id, "prices": {"task.created": walk.random.randrange(3)}}
        walk.send("POST", "/billing/prices", prices, by="operator")


def _workspace(walk: Walk) -> None:
    where = f"/workspaces/{walk.workspace_id}"
    if walk.random.random() < 0.5:
        walk.send("POST", "/workspaces", {}, by="operator")
    else:
        walk.send("PATCH", f"{where}/policy", {"blockRoutes": {"ambiguity": [walk.one("role")]}})


def _rarely_by_chance(walk: Walk) -> None:
    """Call operations that need a certain state in that state, so that every walk covers every operation."""
    role_id = walk.send("POST", "/roles", {"name": "passing"}).json["id"]
    walk.send("PATCH", f"/roles/{role_id}", {"name": "Passing", "capabilities": ["reading"]})
    walk.send("DELETE", f"/roles/{role_id}")
    _register(walk, "Rare")
    agent_id, queue_id = walk.ids["agent"][-1], walk.send("POST", "/queues", {"name": "rare"}).json["queueId"]
    task_id = walk.send("POST", f"/queues/{queue_id}/tasks", {"title": "Rare"}).json["taskId"]
    claim_id = walk.send("POST", f"/tasks/{task_id}/claim", {"agentId": agent_id}).json["claimId"]
    task, claim = f"/tasks/{task_id}", f"/claims/{claim_id}"
    for path, body in (
        (f"{claim}/start", {}),
        (f"{claim}/plan", {"plan": ["one", "two"]}),
        (f"{claim}/usage", {"usage": [{"model": "gpt-5", "costUsd": 0.25}]}),
        (f"{claim}/progress", {"text": "half", "percent": 50}),
        (f"{task}/concerns", {"concern": "hm", "severity": "minor"}),
        (f"{claim}/block", {"reason": "stuck", "blockerType": "ambiguity"}),
        (f"{task}/unblock", {"answer": "do this"}),
        (f"{task}/cancel", {}),
        (f"{task}/retry", {}),
        ("/workflow-definitions/validate", {"plan": PLAN}),
    ):
        assert walk.send("POST", path, body).status < 300, path
    for verb, body in (("release", {}), ("fail", {"reason": "no"}), ("complete", {})):
        task_id = walk.send("POST", f"/queues/{queue_id}/tasks", {"title": "Rare"}).json["taskId"]
        claim_id = walk.send("POST", f"/tasks/{task_id}/claim", {"agentId": agent_id}).json["claimId"]
        walk.send("POST", f"/claims/{claim_id}/heartbeat", {})
        assert walk.send("POST", f"/claims/{claim_id}/{verb}", body).status == 200, verb
    for verb in ("approve", "reject"):
        _gated_run(walk, agent_id, queue_id, verb)
        _gated_work(walk, agent_id, queue_id)
        gate = next(one for one in walk.client.get("/gates?state=open").json["items"] if one["queueId"] == queue_id)
        assert walk.send("POST", f"/gates/{gate['gateId']}/{verb}", {"note": "said"}, by="judge").status == 200
    run = walk.send("POST", "/workflows", {"plan": PLAN, "queueId": queue_id}).json["workflowId"]
    for verb in ("pause", "resume", "cancel"):
        assert walk.send("POST", f"/workflows/{run}/{verb}").status == 200
    made = walk.send("POST", "/workflow-definitions", {"plan": PLAN}).json["definitionId"]
    for method, path in (("PATCH", ""), ("POST", "/publish"), ("POST", "/versions")):
        body = None if path == "/publish" else {"plan": PLAN, **({"revision": 1} if method == "PATCH" else {})}
        assert walk.send(method, f"/workflow-definitions/{made}{path}", body).status < 300, path
    _webhook(walk)
    _project(walk)
    _person(walk)
    keys = f"/workspaces/{walk.workspace_id}/api-keys"
    assert walk.send("DELETE", f"{keys}/{walk.send('POST', keys, {'scopes': ['read']}).json['keyId']}").status == 200
    for _ in range(20):
        for act in (_bill, _workspace):
            act(walk)


# One attempt, to a port where nobody listens: a webhook is parked with its first event.
OUTBOX = "[outbox]\nallow_private = true\nattempts = 1\n"


def _webhook(walk: Walk) -> None:
    """A webhook that is parked, resumed and removed."""
    webhook = {"receiverUrl": "http://127.0.0.1:1/redkey", "types": ["queue.created"]}
    place = f"/webhooks/{walk.send('POST', '/webhooks', webhook).json['webhookId']}"
    walk.know("queue", walk.send("POST", "/queues", {"name": "parks"}).json["queueId"])
    until(lambda: walk.client.get(place).json["state"] == "parked")
    assert walk.send("POST", f"{place}/resume").status == 200
    assert walk.send("DELETE", place).status == 200


def _project(walk: Walk) -> None:
    """A project with a phase, both changed and completed."""
    project = f"/projects/{walk.send('POST', '/projects', {'name': 'Season'}).json['projectId']}"
    phase = f"/phases/{walk.send('POST', f'{project}/phases', {'name': 'Casting'}).json['phaseId']}"
    for place in (phase, project):
        assert walk.send("PATCH", place, {"status": "on_hold"}).status == 200
        assert walk.send("POST", f"{place}/complete", {}).status == 200


def _person(walk: Walk) -> None:
    """A person who is invited and removed."""
    people = f"/workspaces/{walk.workspace_id}/people"
    invited = walk.send("POST", people, {"email": "ada@example.com"})
    assert invited.status == 201
    assert walk.send("DELETE", f"{people}/{invited.json['personId']}").status == 200


ACTIONS: list[Callable[[Walk], None]] = [
    *[_create_task] * 4,
    _create_batch,
    *[_claim] * 4,
    *[_claim_next] * 4,
    _on_claim("start"),
    _on_claim("release"),
    *[_on_claim("heartbeat")] * 2,
    _on_claim("block", lambda walk: {"reason": "stuck", "blockerType": "ambiguity"}),
    _on_claim("plan", lambda walk: {"plan": ["one", "two"]}),
    _on_claim("artifacts", lambda walk: {"name": walk.random.choice(["notes", "text"]), "content": "c"}),
    *[_on_claim("complete", _completion)] * 3,
    _on_claim("fail", lambda walk: {"reason": "no", "claimNext": {"queueId": walk.one("queue")}}),
    _complete_many,
    _on_task("cancel"),
    _on_task("retry"),
    _on_task("unblock", lambda walk: {"answer": "do this"}),
    _on_task("messages", lambda walk: {"parts": [{"kind": "text", "text": "hello"}]}),
    _on_task("concerns", lambda walk: {"concern": "hm", "severity": "minor"}),
    _mail,
    _read_mail,
    *[_grant] * 2,
    _update_agent,
    _on_workflow,
    _update_queue,
    _start_workflow,
    *[_definition] * 2,
    _key,
    _agent_key,
    *[_heartbeat] * 2,
    *[_gate] * 2,
    lambda walk: _gated_work(walk, walk.one("agent"), walk.one("queue")),
    lambda walk: _gated_run(walk, walk.one("agent"), walk.one("queue"), walk.random.choice(["approve", "reject"])),
    _bill,
    _workspace,
    lambda walk: _register(walk, walk.random.choice(["Dee", "Eve"])),
    lambda walk: walk.send("POST", f"/agents/{walk.one('agent')}/deactivate") and None,
]


# Erasing makes the answers unknown that may have shown what was erased: it has a test of its own. Rules are raised in
# workspaces of the first version.
NOT_WALKED = {"DELETE /content/{sha256}", "POST /workspaces/{workspaceId}/rules"}


def begin(server: Server, seed: int) -> Walk:
    with server.client() as operator:
        made = operator.post("/workspaces", {}).json
    client = server.client(made["apiKey"])
    second = client.post(f"/workspaces/{made['workspaceId']}/api-keys", {"scopes": ["admin"]}).json
    client.close()
    keys = {"admin": made["apiKey"], "judge": second["apiKey"], "operator": server.key}
    walk = Walk(server, keys, made["workspaceId"], seed)
    _begin(walk)
    return walk


@pytest.fixture
def walk(server: Server) -> Iterator[Walk]:
    with begin(server, 0) as begun:
        yield begun


def test_an_answered_request_is_answered_alike_whatever_happens(start: Callable[..., Server]) -> None:
    first = start(config=OUTBOX)
    walks = [begin(first, seed) for seed in SEEDS]
    for walk in walks:
        for _ in range(ACTS):
            walk.random.choice(ACTIONS)(walk)
            if walk.random.random() < 0.3:
                walk.repeat(walk.random.choice(walk.sent))
        for act in (_rarely_by_chance, *ACTIONS):
            act(walk)
        assert not walk.unseen
        for sent in walk.sent:
            walk.repeat(sent)
    # Another process on the same data, and then one that finds it after a restart.
    second = start(name="second", config=OUTBOX)
    _repeat_all(second, walks)
    assert (first.stop(), second.stop()) == (0, 0)
    _repeat_all(start(name="again", config=OUTBOX), walks)


def _repeat_all(server: Server, walks: list[Walk]) -> None:
    for walk in walks:
        walk.move(server)
        with walk:
            for sent in walk.sent:
                walk.repeat(sent)


def test_a_request_whose_key_has_left_the_window_is_never_executed_twice(start: Callable[..., Server]) -> None:
    """The same walk at servers whose window is a few keys: a repeat gives the same bytes, or says that it cannot."""
    script = (sys.executable, str(Path(__file__).parent / "short_window.py"))
    first = start(python=script)
    walk = begin(first, 1)
    for _ in range(ACTS):
        walk.random.choice(ACTIONS)(walk)
        if walk.random.random() < 0.3:
            walk.repeat(walk.random.choice(walk.sent), "idempotency_key_expired")
    second = start(name="second", python=script)
    for server in (first, second, first):
        walk.move(server)
        before = head(walk.client)
        answers = Counter(walk.repeat(sent, "idempotency_key_expired") for sent in walk.sent)
        # The last are in the window, most are not, and nothing is done once more.
        assert answers[""] > 0
        assert answers["idempotency_key_expired"] > len(walk.sent) // 2
        assert head(walk.client) == before
    assert (first.stop(), second.stop()) == (0, 0)
    with walk:
        walk.move(start(name="again", python=script))
        for sent in walk.sent:
            walk.repeat(sent, "idempotency_key_expired")
        assert head(walk.client) == before


def test_a_stored_reply_does_not_return_erased_content(walk: Walk) -> None:
    agent_id = walk.one("agent")
    shown = walk.request("PATCH", f"/agents/{agent_id}", {"active": True}, "k")
    assert b"Finds and summarizes" in shown.content
    content = walk.client.put("/content", b"anything", headers={"content-type": "text/plain"}).json
    assert walk.client.delete(f"/content/{content['sha256']}").status == 200
    again = walk.request("PATCH", f"/agents/{agent_id}", {"active": True}, "k")
    assert (again.status, again.json["code"]) == (410, "answer_erased")
    other = walk.request("PATCH", f"/agents/{agent_id}", {"active": False}, "k")
    assert (other.status, other.json["code"]) == (422, "idempotency_key_reused")


def test_many_at_once_get_the_bytes_of_the_first(walk: Walk, server: Server) -> None:
    path, replies = f"/agents/{walk.one('agent')}", []

    def ask() -> None:
        with server.client(walk.client.key) as client:
            for _ in range(5):
                reply = client.request("PATCH", path, json={"active": True}, headers={"idempotency-key": "k"})
                replies.append((reply.status, reply.content))
                client.post(f"{path}/heartbeat", {"capacity": len(replies)})

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(replies) == 40
    assert len(set(replies)) == 1
