"""Every operation of the API through the SDK, written once and run with each kind of client."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from redkey.client import (
    ApprovalGate,
    Claimed,
    ClaimNext,
    Conflict,
    Forbidden,
    Invalid,
    Missed,
    NoTasks,
    NotFound,
    Rejected,
    Retry,
)

CARD = {"name": "Research Agent", "url": "https://agent.example.com/a2a", "version": "1.0.0", "skills": []}
PLAN: dict[str, Any] = {
    "version": "1.0",
    "name": "episode",
    "description": "Two steps.",
    "roles": {"producer": {"description": "Makes."}, "reviewer": {"description": "Reviews."}},
    "tasks": [
        {
            "id": "draft",
            "title": "Draft the script",
            "role": "producer",
            "dependsOn": [],
            "approvalGate": True,
            "outputs": ["script"],
            "completionCriteria": ["A script with three segments exists"],
        },
        {
            "id": "review",
            "title": "Review the script",
            "role": "reviewer",
            "dependsOn": ["draft"],
            "outputs": ["notes"],
            "completionCriteria": ["Every weak question is named"],
        },
    ],
    "policies": {"maxParallelTasks": 2, "retry": {"maxAttempts": 3, "onFailure": "reopen"}},
}


async def done(value: Any) -> Any:
    """The reply, whether it came at once or is awaited."""
    return await value if inspect.isawaitable(value) else value


async def every(pages: Any) -> list[Any]:
    """All items of a list, whichever way it is walked."""
    if hasattr(pages, "__aiter__"):
        return [item async for item in pages]
    return list(pages)


async def first(stream: Any, count: int = 1) -> list[Any]:
    """The first values of a stream, which is closed then."""
    found = []
    if hasattr(stream, "__aiter__"):
        async for value in stream:
            found.append(value)
            if len(found) == count:
                break
        await stream.aclose()
        return found
    for value in stream:
        found.append(value)
        if len(found) == count:
            break
    stream.close()
    return found


async def play(rk: Any, decider: Any, operator: Any, workspace_id: str, directory: Path) -> None:
    """The whole API, by the admin of a fresh workspace, another who approves, and the operator of the server."""
    await _server(rk, operator, workspace_id)
    agent = await _agents(rk)
    await _queues(rk, agent)
    await _claims(rk, agent)
    await _tasks(rk)
    await _workflows(rk, decider)
    await _messages(rk, agent)
    await _record(rk, directory)
    await _content(rk, directory)
    await _money(rk, operator, workspace_id)
    await _policies(rk, operator, workspace_id)
    await _projects(rk)
    await _people(rk, workspace_id)
    assert (await done(rk.agents.deactivate(agent))).status == "deactivated"


async def _policies(rk: Any, operator: Any, workspace_id: str) -> None:
    await done(rk.roles.create("editor"))
    assert (await done(rk.roles.update("editor", capabilities=["editing"]))).capabilities == ("editing",)
    await done(rk.roles.create("passing"))
    assert (await done(rk.roles.remove("passing"))).status == "removed"
    changed = await done(rk.workspaces.set_policy(workspace_id, block_routes={"ambiguity": ["role_editor"]}))
    assert changed.block_routes == {"ambiguity": ("role_editor",)}
    policy = await done(rk.workspaces.policy(workspace_id))
    assert (policy.rules, policy.block_routes["ambiguity"], policy.block_routes["auth"]) == (2, ("role_editor",), ())
    with pytest.raises(Conflict, match="never lowered"):
        await done(operator.workspaces.raise_rules(workspace_id, 2))


async def _projects(rk: Any) -> None:
    project = (await done(rk.projects.create("Season two", id="project_two"))).project_id
    assert (await done(rk.projects.update(project, description="Twelve episodes."))).status == "active"
    assert project in {one.project_id for one in await every(rk.projects.list())}
    phase = (await done(rk.phases.create(project, "Casting", id="phase_casting"))).phase_id
    assert (await done(rk.phases.update(phase, status="on_hold"))).status == "on_hold"
    assert (await done(rk.phases.get(phase))).project_id == project
    assert (await done(rk.phases.complete(phase))).status == "completed"
    assert (await done(rk.projects.complete(project))).status == "completed"
    assert (await done(rk.projects.get(project))).description == "Twelve episodes."
    events = [one.type for one in await every(rk.projects.events(project))]
    assert events == ["project.created", "project.updated", "phase.created", "project.completed"]
    assert [one.type for one in await every(rk.phases.events(phase))] == [
        "phase.created",
        "phase.updated",
        "phase.completed",
    ]


async def _people(rk: Any, workspace_id: str) -> None:
    person = await done(rk.people.invite(workspace_id, "ada@example.com", name="Ada"))
    assert person.login_code not in repr(person)
    assert (await done(rk.people.code(workspace_id, person.person_id))).login_code != person.login_code
    assert [one.email for one in await every(rk.people.list(workspace_id))] == ["ada@example.com"]
    with pytest.raises(NotFound):
        await done(rk.people.end_session(workspace_id, person.person_id, "session_none"))
    assert (await done(rk.people.remove(workspace_id, person.person_id))).status == "removed"
    with pytest.raises(Forbidden, match="signup"):
        await done(rk.signup.create(name="Mine"))
    client = await done(rk.oauth.register(redirect_uris=["http://127.0.0.1/done"], client_name="A test"))
    assert (await done(rk.oauth.revoke("rkr_none", client_id=client.client_id))) is not None
    assert (await done(rk.oauth.resource())).authorization_servers
    assert (await done(rk.oauth.mcp_resource())).resource.endswith("/mcp")


async def _server(rk: Any, operator: Any, workspace_id: str) -> None:
    assert (await done(rk.server.health())).status == "ok"
    assert (await done(rk.server.ready())).status == "ready"
    assert "redkey" in await done(rk.server.metrics())
    assert "/tasks/{taskId}/claim" in (await done(rk.server.openapi()))["paths"]
    assert "<html" in await done(rk.server.docs())
    # No event of this type comes, so nothing is sent.
    hook = await done(rk.webhooks.create("https://hooks.example.com/redkey", types=["party.added"]))
    assert [one.webhook_id for one in await every(rk.webhooks.list())] == [hook.webhook_id]
    assert (await done(rk.webhooks.get(hook.webhook_id))).state == "waiting"
    with pytest.raises(Conflict, match="not parked"):
        await done(rk.webhooks.resume(hook.webhook_id))
    assert (await done(rk.webhooks.remove(hook.webhook_id))).status == "removed"
    assert [one.workspace_id for one in await every(rk.workspaces.list())] == [workspace_id]
    made = await done(operator.workspaces.create(name="Another"))
    assert made.workspace_id in {one.workspace_id for one in await every(operator.workspaces.list(limit=2))}
    key = await done(rk.keys.create(workspace_id, scopes=["produce"], name="pipeline"))
    assert key.api_key not in repr(key)
    assert key.key_id in {one.key_id for one in await every(rk.keys.list(workspace_id, limit=1))}
    public_id, _, secret = key.api_key.rpartition("_")
    token = await done(rk.oauth.token(public_id, secret, scope="produce"))
    assert token.scope == "produce"
    assert token.access_token not in repr(token)
    assert (await done(rk.oauth.metadata())).token_endpoint.endswith("/oauth/token")
    assert (await done(rk.oauth.key_set())).keys[0].kty == "OKP"
    assert (await done(rk.keys.revoke(workspace_id, key.key_id))).status == "revoked"


async def _agents(rk: Any) -> str:
    made = await done(rk.agents.register(card=CARD, eligible_roles=["researcher"], issue_key=True))
    assert made.slug == "research-agent"
    assert made.api_key
    assert made.api_key not in repr(made)
    agent = str(made.agent_id)
    assert (await done(rk.agents.get(agent))).card["name"] == "Research Agent"
    assert (await done(rk.agents.update(agent, slug="researcher-1"))).slug == "researcher-1"
    assert [one.agent_id for one in await every(rk.agents.list(slug="researcher-1"))] == [agent]
    assert (await done(rk.agents.heartbeat(agent, capacity=2, in_use=0))).status == "alive"
    assert (await done(rk.roles.create("researcher", capabilities=["web_search"]))).id == "role_researcher"
    assert (await done(rk.roles.grant("researcher", agent))).status == "granted"
    assert (await done(rk.roles.get("roles.researcher"))).agents == (agent,)
    assert [one.id for one in await every(rk.roles.list())] == ["role_researcher"]
    assert (await done(rk.roles.revoke("researcher", agent))).status == "revoked"
    await done(rk.roles.grant("researcher", agent))
    return agent


async def _queues(rk: Any, agent: str) -> None:
    assert (await done(rk.queues.create("podcast", lease_seconds=600))).queue_id == "queue_podcast"
    assert (await done(rk.queues.get("podcast"))).lease_seconds == 600
    assert (await done(rk.queues.update("podcast", description="Episodes"))).description == "Episodes"
    assert [one.queue_id for one in await every(rk.queues.list())] == ["queue_podcast"]
    assert (await done(rk.queues.counts("podcast"))).tasks["available"] == 0
    nothing = await done(rk.queues.claim_next("podcast", agent))
    assert isinstance(nothing, NoTasks)
    assert nothing.status == "no_tasks"


async def _claims(rk: Any, agent: str) -> None:
    other = (await done(rk.agents.register(card={**CARD, "name": "Rival"}))).agent_id
    outsider = (await done(rk.agents.register(card={**CARD, "name": "Outsider"}))).agent_id
    await done(rk.roles.grant("researcher", other))
    task = await done(
        rk.tasks.create(
            "podcast",
            title="Research Piers Gorman",
            required_roles=["researcher"],
            input={"guestName": "Piers Gorman"},
            outputs=["packet"],
            retry=Retry(max_attempts=2),
        )
    )
    rejected = await done(rk.tasks.claim(task.task_id, outsider))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "missing_role"
    claimed = await done(rk.tasks.claim(task.task_id, agent, lease_seconds=60, with_task=True))
    assert isinstance(claimed, Claimed)
    assert claimed.task is not None
    assert claimed.task.input == {"guestName": "Piers Gorman"}
    missed = await done(rk.tasks.claim(task.task_id, other))
    assert isinstance(missed, Missed)
    assert missed.winning_claim_id == claimed.claim_id
    claim = claimed.claim_id
    assert (await done(rk.claims.start(claim))).status == "started"
    assert (await done(rk.claims.plan(claim, {"steps": ["search"]}))).status == "planned"
    assert (await done(rk.claims.heartbeat(claim))).state == "held"
    assert (await done(rk.claims.report_progress(claim, "Half of it.", percent=50))).recorded
    await done(rk.claims.report_usage(claim, [{"model": "gpt-5", "cost_usd": 0.25}]))
    assert task.task_id in (await done(rk.server.find_ids(task.task_id))).items
    concern = await done(rk.tasks.raise_concern(task.task_id, "A source is weak.", severity="major"))
    assert concern.task_id == task.task_id
    with pytest.raises(Invalid) as refused:
        await done(rk.claims.complete(claim, output={}))
    assert refused.value.code == "missing_artifact"
    added = await done(rk.claims.add_artifact(claim, "packet", content={"facts": 5}))
    assert added.name == "packet"
    await _create(rk, "Second")
    ended = await done(rk.claims.complete(claim, output={"facts": 5}, claim_next=ClaimNext("podcast", 60)))
    assert isinstance(ended.next, Claimed)
    assert (await done(rk.claims.release(ended.next.claim_id))).status == "released"
    assert {event.type for event in await every(rk.claims.events(claim))} >= {"task.claimed", "task.complete"}
    assert {one.status for one in await every(rk.agents.claim_history(other))} == {"missed"}
    again = await done(rk.queues.claim_next("podcast", agent, count=1))
    failed = await done(rk.claims.fail(again.claim_id, "no luck", kind="timeout"))
    assert failed.status == "failed"
    await _create(rk, "Third")
    third = await done(rk.queues.claim_next("podcast", agent, wait=1))
    assert (await done(rk.claims.block(third.claim_id, "Which?", blocker_type="ambiguity"))).status == "blocked"
    assert (await done(rk.tasks.unblock(third.task_id, "The first."))).status == "available"
    fourth = await done(rk.queues.claim_next("podcast", agent))
    results = await done(rk.claims.complete_many([{"claim_id": fourth.claim_id}, {"claim_id": claim}]))
    assert results.items[0].claim.status == "completed"
    assert results.items[1].problem.error.code == "already_terminal"


async def _create(rk: Any, title: str) -> Any:
    return await done(rk.tasks.create("podcast", title=title, required_roles=["role_researcher"]))


async def _extensions(rk: Any, before: str) -> None:
    """Data of the caller and the lineage of a task, given by the SDK and read by it."""

    def data(name: str) -> dict[str, Any]:
        return {"com.example.shop": {"of": name, "at": [1, None]}}

    lineage = {"correlation_id": "order:4711", "parent_task_id": before, "reference_task_ids": [before]}
    task = (await done(rk.tasks.create("podcast", title="Part", **lineage, extensions=data("task.created")))).task_id
    found = await done(rk.tasks.get(task))
    assert found.extensions == data("task.created")
    assert (found.correlation_id, found.parent_task_id, found.reference_task_ids) == ("order:4711", before, (before,))
    await done(rk.tasks.cancel(task, extensions=data("task.cancelled")))
    events = await every(rk.tasks.events(task, type=["task.created", "task.cancelled"]))
    assert [(one.type, one.extensions) for one in events] == [
        (name, data(name)) for name in ("task.created", "task.cancelled")
    ]
    with pytest.raises(Invalid) as refused:
        await done(rk.tasks.create("podcast", title="Part", extensions={"mine": 1}))
    assert refused.value.errors[0].pointer.startswith("/extensions")


async def _tasks(rk: Any) -> None:
    made = await done(
        rk.tasks.create_many(
            "podcast",
            [
                {"title": "A", "approval_gate": ApprovalGate(("role_x",))},
                {"title": "B", "depends_on": ["task_00000000000000000000000000"]},
            ],
        )
    )
    assert made.items[1].problem.error.status == 422
    task = made.items[0].task.task_id
    assert task in {one.task_id for one in await every(rk.tasks.list("podcast", state="available", limit=1))}
    assert task in {one.task_id for one in await every(rk.tasks.available("podcast", wait=1))}
    found = await done(rk.tasks.get(task))
    assert found.title == "A"
    await _extensions(rk, task)
    assert (await done(rk.tasks.context(found.context_id))).task_count >= 1
    assert (await done(rk.tasks.explain(task))).reasons
    said = await done(rk.tasks.add_message(task, "The guest moved.", metadata={"day": 4}))
    assert [one.message_id for one in await every(rk.tasks.messages(task))] == [said.message_id]
    assert (await done(rk.tasks.cancel(task))).status == "cancelled"
    assert (await done(rk.tasks.retry(task))).attempt == 2
    events = await every(rk.tasks.events(task, type=["task.created", "task.cancelled"], limit=1))
    assert [event.type for event in events] == ["task.created", "task.cancelled", "task.created"]
    before = await done(rk.tasks.get(task, at_sequence=events[0].sequence))
    assert (before.state, before.attempt) == ("created", 1)
    with pytest.raises(NotFound):
        await done(rk.tasks.get("task_00000000000000000000000000"))


async def _workflows(rk: Any, decider: Any) -> None:
    assert (await done(rk.definitions.validate(PLAN))).valid
    assert not (await done(rk.definitions.validate({"tasks": []}))).valid
    await done(rk.queues.create("episodes"))
    assert (await done(rk.definitions.simulate(PLAN))).finished
    code = (await done(rk.logins.create())).secret
    assert (await done(rk.logins.exchange(code=code, scope="read"))).scopes == ("read",)
    draft = await done(rk.definitions.create(PLAN))
    changed = await done(rk.definitions.update(draft.definition_id, PLAN, revision=draft.revision))
    assert changed.revision > draft.revision
    assert (await done(rk.definitions.publish(draft.definition_id))).version == 1
    assert (await done(rk.definitions.create_version(draft.definition_id))).version == 2
    assert (await done(rk.definitions.get(draft.definition_id, version=1))).plan["name"] == "episode"
    assert [one.definition_id for one in await every(rk.definitions.list())] == [draft.definition_id]
    run = await done(rk.workflows.start("episodes", definition_id=draft.definition_id, version=1, input={"guest": "A"}))
    assert run.available_tasks == ("draft",)
    maker = (await done(rk.agents.register(card={**CARD, "name": "Maker"}, issue_key=True))).agent_id
    await done(rk.roles.grant("producer", maker))
    for decide in ("reject_gate", "reject", "approve"):
        claimed = await done(rk.queues.claim_next("episodes", maker))
        await done(rk.claims.add_artifact(claimed.claim_id, "script", content="Hello"))
        ended = await done(rk.claims.complete(claimed.claim_id))
        assert [one.gate_id for one in await every(rk.gates.list(state="open"))] == [ended.gate_id]
        assert (await done(rk.gates.get(ended.gate_id))).plan_task_id == "draft"
        if decide == "reject_gate":
            assert (await done(decider.gates.reject(ended.gate_id, "More."))).retry
        elif decide == "reject":
            assert (await done(decider.workflows.reject(run.workflow_id, "draft", "Still more."))).retry
        else:
            assert (await done(decider.workflows.approve(run.workflow_id, "draft", "Good."))).status == "approved"
    await _one_run(rk, run.workflow_id)
    await _approved(rk, decider, maker)


async def _approved(rk: Any, decider: Any, maker: str) -> None:
    run = await done(rk.workflows.start("episodes", plan=PLAN))
    claimed = await done(rk.queues.claim_next("episodes", maker))
    await done(rk.claims.add_artifact(claimed.claim_id, "script", content_base64="SGVsbG8="))
    ended = await done(rk.claims.complete(claimed.claim_id))
    assert (await done(decider.gates.approve(ended.gate_id))).workflow_id == run.workflow_id


async def _one_run(rk: Any, workflow_id: str) -> None:
    state = await done(rk.workflows.state(workflow_id))
    assert {step.plan_task_id: step.state for step in state.tasks} == {"draft": "completed", "review": "available"}
    assert (await done(rk.workflows.state(workflow_id, at_sequence=state.sequence))).sequence == state.sequence
    assert len((await done(rk.workflows.graph(workflow_id))).edges) == 1
    assert (await done(rk.workflows.mermaid(workflow_id))).startswith(("flowchart", "graph"))
    assert (await done(rk.workflows.pause(workflow_id))).status == "paused"
    assert (await done(rk.workflows.resume(workflow_id))).status == "running"
    assert (await done(rk.workflows.cancel(workflow_id))).status == "cancelled"
    assert (await done(rk.workflows.get(workflow_id))).status == "cancelled"
    assert workflow_id in {one.workflow_id for one in await every(rk.workflows.list(state="ended"))}
    events = await every(rk.workflows.events(workflow_id, limit=5))
    assert events[0].type == "workflow.started"
    # A cursor is the sequence after which to go on.
    followed = await first(rk.workflows.follow(workflow_id, after=events[0].sequence), 2)
    assert followed == events[1:3]


async def _messages(rk: Any, agent: str) -> None:
    sent = await done(
        rk.inbox.send(agent, "Which audience?", priority=1, message_type="question", action_required=True)
    )
    assert sent.message_id in {one.message_id for one in await every(rk.agents.inbox(agent, unread=True))}
    assert (await done(rk.inbox.read(sent.message_id))).status == "read"
    human = await done(rk.inbox.send("human", "Done", body="All of it."))
    assert human.message_id in {one.message_id for one in await every(rk.inbox.list(to="human"))}


async def _record(rk: Any, directory: Path) -> None:
    events = await every(rk.ledger.query(limit=7))
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    day = events[0].timestamp[:10]
    assert await every(rk.ledger.query(type="workspace.created", since=day, order="desc")) == events[:1]
    assert await done(rk.events.get(events[0].event_id)) == events[0]
    assert await first(rk.events.follow(after=0), 3) == events[:3]
    agent = next(event.subject.id for event in events if event.type == "agent.registered")
    of_agent = await every(rk.agents.events(agent, type="agent.registered,agent.heartbeat"))
    followed = await first(
        rk.agents.follow(agent, type=["agent.registered", "agent.heartbeat"], after=1), len(of_agent)
    )
    assert followed == of_agent
    receipt = await done(rk.receipts.get(events[-1].event_id))
    assert receipt.save(directory / "receipt.json").read_bytes() == receipt.document
    assert receipt.offline is not None
    assert (await done(rk.receipts.summary(events[0].event_id))).offline is None
    assert "c2sp.org/tlog-proof" in await done(rk.receipts.tlog_proof(events[0].event_id))
    assert events[0].event_id in await done(rk.receipts.page(events[0].event_id))
    assert (await done(rk.checkpoints.latest())).size >= 1


async def _content(rk: Any, directory: Path) -> None:
    kept = await done(rk.content.put(b"some bytes"))
    assert await done(rk.content.get(kept.sha256)) == b"some bytes"
    file = directory / "large"
    file.write_bytes(b"0123456789abcdef" * 70_000)
    large = await done(rk.content.put(file))
    assert large.bytes == file.stat().st_size
    assert b"".join(await first(rk.content.pieces(large.sha256), 1_000_000)) == file.read_bytes()
    with pytest.raises(Invalid) as refused:
        await done(rk.content.put("text", sha256=kept.sha256))
    assert refused.value.code == "content_hash"
    assert (await done(rk.content.erase(kept.sha256))).status == "erased"


async def _money(rk: Any, operator: Any, workspace_id: str) -> None:
    assert (await done(rk.usage.get(by="type"))).total.events > 50
    assert (await done(rk.billing.credits())).balance is None
    assert (await done(operator.billing.grant(1000, workspace_id=workspace_id))).amount == 1000
    assert (await done(operator.billing.set_prices({"task.created": 2}, workspace_id=workspace_id))).version == 1
    assert (await done(rk.billing.credits())).prices["task.created"] == 2
