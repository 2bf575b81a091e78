"""The inbox over HTTP: to an agent, a role or the humans; by priority, then by age; read once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, create_task, head, register
from tests.harness.client import Client


def send(client: Client, to: str, subject: str = "Hello", **more: Any) -> dict[str, Any]:
    reply = client.post("/inbox", {"to": to, "subject": subject, "body": f"About {subject}", **more})
    assert reply.status == 201, reply.text
    sent: dict[str, Any] = reply.json
    return sent


def subjects(client: Client, path: str) -> list[str]:
    return [message["subject"] for message in client.get(path).json["items"]]


def test_a_message_has_the_fields_of_the_seed(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    agent = register(workspace.admin)
    task_id = create_task(workspace.admin)
    body = {
        "to": agent["slug"],
        "priority": 2,
        "messageType": "task.feedback",
        "refTaskId": task_id,
        "subject": "Findings",
        "body": "1. The second source is a press release.",
        "actionRequired": True,
    }
    sent = workspace.admin.post("/inbox", body).json
    (shown,) = workspace.admin.get(f"/agents/{agent['agentId']}/inbox?unread=true").json["items"]
    assert shown["messageId"] == sent["messageId"]
    assert shown["to"] == agent["agentId"]
    assert shown["sender"].startswith("human:")
    same = ("priority", "messageType", "refTaskId", "subject", "body", "actionRequired")
    assert {name: shown[name] for name in same} == {name: body[name] for name in same}
    event = workspace.admin.get(f"/events/{sent['eventId']}").json
    assert (event["type"], event["subject"]["id"]) == ("inbox.sent", sent["messageId"])
    assert "press release" not in workspace.admin.get(f"/events/{sent['eventId']}").text


def test_an_agent_is_named_by_id_or_slug(workspace: Workspace) -> None:
    agent = register(workspace.admin)
    for name in (agent["agentId"], agent["slug"], f"agent:{agent['agentId']}"):
        assert send(workspace.admin, name)["messages"][0]["to"] == agent["agentId"]
    reply = workspace.admin.post("/inbox", {"toAgent": agent["slug"], "subject": "As the seed spells it"})
    assert reply.status == 201


def test_messages_come_by_priority_then_by_age_in_pages(workspace: Workspace) -> None:
    for number, priority in enumerate((3, 1, 2, 1, 3)):
        send(workspace.admin, "human", f"{priority}-{number}", priority=priority)
    expected = ["1-1", "1-3", "2-2", "3-0", "3-4"]
    assert subjects(workspace.admin, "/inbox") == expected
    found = workspace.admin.get("/inbox").json["items"]
    for message in found[1:3]:
        assert workspace.admin.post(f"/inbox/{message['messageId']}/read").json["status"] == "read"
    # Read or not, the order is one.
    assert subjects(workspace.admin, "/inbox") == expected
    assert subjects(workspace.admin, "/inbox?unread=true") == ["1-1", "3-0", "3-4"]
    seen: list[str] = []
    after = ""
    while True:
        page = workspace.admin.get(f"/inbox?limit=2&after={after}").json
        seen += [message["subject"] for message in page["items"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert seen == expected


def test_mail_to_a_role_goes_to_each_active_agent_that_has_it_or_to_the_humans(workspace: Workspace) -> None:
    workspace.admin.post("/roles", {"name": "PM"})
    assert [one["to"] for one in send(workspace.admin, "roles.pm", "Nobody yet")["messages"]] == ["human"]
    agents = sorted(register(workspace.admin, f"Agent {number}")["agentId"] for number in range(3))
    for agent_id in agents:
        workspace.admin.post(f"/roles/pm/agents/{agent_id}")
    workspace.admin.post(f"/agents/{agents[0]}/deactivate")
    sent = send(workspace.admin, "role_pm", "To all")
    assert [one["to"] for one in sent["messages"]] == agents[1:]
    assert sent["messageId"] == sent["messages"][0]["messageId"]
    assert subjects(workspace.admin, f"/agents/{agents[1]}/inbox") == ["To all"]
    assert subjects(workspace.admin, f"/agents/{agents[0]}/inbox") == []
    assert subjects(workspace.admin, "/inbox?to=human") == ["Nobody yet"]
    assert workspace.admin.get("/inbox?to=role_pm").status == 422


def test_a_message_is_read_once_and_saying_it_again_writes_nothing(workspace: Workspace) -> None:
    message_id = send(workspace.admin, "human")["messageId"]
    first = workspace.admin.post(f"/inbox/{message_id}/read", key="r1")
    assert "eventId" in first.json
    before = head(workspace.admin)
    assert "eventId" not in workspace.admin.post(f"/inbox/{message_id}/read").json
    assert workspace.admin.post(f"/inbox/{message_id}/read", key="r1").content == first.content
    assert head(workspace.admin) == before
    assert workspace.admin.get("/inbox").json["items"][0]["readAt"]
    assert workspace.admin.post("/inbox/msg_nobody/read").json["code"] == "message_not_found"


def test_an_agent_key_sees_and_reads_its_own_mail_alone(workspace: Workspace) -> None:
    own, another = register(workspace.admin, "Own"), register(workspace.admin, "Another")
    mine = send(workspace.admin, own["agentId"], "Mine")["messageId"]
    others = send(workspace.admin, another["agentId"], "Theirs")["messageId"]
    humans = send(workspace.admin, "human", "Humans")["messageId"]
    caller = workspace.caller("agent", agent_id=own["agentId"])
    assert subjects(caller, "/inbox") == subjects(caller, f"/agents/{own['agentId']}/inbox") == ["Mine"]
    for path in (f"/agents/{another['agentId']}/inbox", f"/inbox?to={another['agentId']}", "/inbox?to=human"):
        assert caller.get(path).status == 404
    for message_id in (others, humans):
        missing = caller.post("/inbox/msg_01JTMX9A2B3C4D5E6F7G8H9JKP/read")
        assert caller.post(f"/inbox/{message_id}/read").content == missing.content
    assert caller.post(f"/inbox/{mine}/read").status == 200
    assert send(caller, "human", "From an agent")["messageId"]
    assert workspace.admin.get("/inbox").json["items"][-1]["sender"] == f"agent:{own['slug']}"
    assert workspace.caller("read").post("/inbox", {"to": "human", "subject": "x"}).status == 403


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"subject": "x"}, "/to"),
        ({"to": "human", "toAgent": "human", "subject": "x"}, "/to"),
        ({"to": "nobody", "subject": "x"}, "/to"),
        ({"toAgent": "nobody", "subject": "x"}, "/toAgent"),
        ({"to": "human"}, "/subject"),
        ({"to": "human", "subject": ""}, "/subject"),
        ({"to": "human", "subject": "x", "priority": 4}, "/priority"),
        ({"to": "human", "subject": "x", "messageType": "spam"}, "/messageType"),
        ({"to": "human", "subject": "x", "refTaskId": "task_01JTMX9A2B3C4D5E6F7G8H9JKP"}, "/refTaskId"),
        ({"to": "human", "subject": "x", "sender": "system"}, "/sender"),
    ],
)
def test_a_bad_message_is_refused_with_its_place(workspace: Workspace, body: dict[str, Any], pointer: str) -> None:
    before = head(workspace.admin)
    reply = workspace.admin.post("/inbox", body)
    assert reply.status == 422
    assert pointer in {error["pointer"] for error in reply.json["errors"]}
    assert head(workspace.admin) == before


def test_a_runner_sends_in_the_name_of_the_agent_that_it_runs_and_an_agent_in_no_others(workspace: Workspace) -> None:
    agent = register(workspace.admin)["agentId"]
    other = register(workspace.admin, "Other")["agentId"]
    body = {"to": "human", "subject": "Which?", "agentId": agent}
    assert workspace.caller("runner").post("/inbox", body).status == 201
    (mail,) = workspace.admin.get("/inbox?to=human").json["items"]
    assert mail["sender"] == "agent:research-agent"
    assert workspace.caller("agent", agent_id=other).post("/inbox", body).status == 404
    assert workspace.caller("produce").post("/inbox", body).status == 404
