"""What the written methods send: paths, bodies, keys and waits, as values before anybody sends them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redkey.client import ClaimNext, NewTask, Retry
from redkey.client.calls.claims import Claims
from redkey.client.calls.queues import Queues
from redkey.client.calls.roles import Roles
from redkey.client.request import Request
from redkey.client.resources.tasks import Tasks
from tools import sdk


def sent(request: Request[Any]) -> Any:
    assert isinstance(request.body, bytes)
    return msgspec.json.decode(request.body)


def test_what_is_not_given_is_not_sent_and_names_are_those_of_the_api() -> None:
    request = Queues.create.build(None, "podcast", lease_seconds=60, paused=False)
    assert (request.method, request.path, request.keyed) == ("POST", "/queues", True)
    assert request.body == b'{"name":"podcast","leaseSeconds":60,"paused":false}'
    assert Tasks.get.build(None, "task_1", at_sequence=7).query == {"at": "7"}
    assert Roles.revoke.build(None, "cook", "a/b").path == "/roles/cook/agents/a%2Fb"


def test_waiting_adds_to_the_timeout_and_is_not_sent_when_there_is_none() -> None:
    waiting = Queues.claim_next.build(None, "podcast", "agt_1", wait=20)
    assert (waiting.wait_seconds, sent(waiting)["wait"]) == (20, 20)
    at_once = Queues.claim_next.build(None, "podcast", "agt_1")
    assert (at_once.wait_seconds, sent(at_once)) == (0, {"agentId": "agt_1"})


def test_a_heartbeat_carries_no_key() -> None:
    assert not Claims.heartbeat.build(None, "clm_1").keyed
    assert Claims.start.build(None, "clm_1").keyed


@pytest.mark.parametrize("retry", [Retry(max_attempts=2), {"max_attempts": 2}, {"maxAttempts": 2}])
def test_objects_are_given_as_shapes_or_as_dicts(retry: Any) -> None:
    assert sent(Tasks.create.build(None, "q", title="A", retry=retry)) == {"title": "A", "retry": {"maxAttempts": 2}}


def test_batches_take_shapes_and_dicts_from_anything_that_can_be_walked() -> None:
    tasks = (one for one in [NewTask(title="A", required_roles=("cook",)), {"title": "B", "required_roles": ["cook"]}])
    assert sent(next(Tasks.create_many.build(None, "q", tasks)))["tasks"] == [
        {"title": "A", "requiredRoles": ["cook"]},
        {"title": "B", "requiredRoles": ["cook"]},
    ]
    ended = Claims.complete_many.build(None, [{"claim_id": "clm_1", "claim_next": ClaimNext(queue_id="q")}])
    assert sent(ended) == {"claims": [{"claimId": "clm_1", "claimNext": {"queueId": "q"}}]}


def test_methods_that_are_written_by_hand_are_not_written_again() -> None:
    made = sdk.generated()[f"{sdk.FOLDER}/tasks.py"].decode()
    assert "def explain(" in made
    assert "def add_message(" not in made
    assert "parts" in Tasks.add_message.build.__code__.co_varnames
