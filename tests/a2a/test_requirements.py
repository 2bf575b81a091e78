"""Every requirement on every transport; and that the checks for what official kits overlook can fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.a2a import permitted, pushing, requirements, resuming, waiting
from tests.a2a.planting import Planting, planting
from tests.a2a.requirements import REQUIREMENTS
from tests.a2a.scene import Scene
from tests.a2a.talk import TRANSPORTS, talking
from tests.harness.client import Client
from tests.harness.server import Server


def stranger_key(owner: Client) -> str:
    """An admin key of another workspace."""
    reply = owner.post("/workspaces", {"name": "Others"})
    assert reply.status == 201, reply.text
    return str(reply.json["apiKey"])


@pytest.fixture(scope="module")
def stranger(owner: Client) -> str:
    return stranger_key(owner)


def hold(server: Server, owner: Client, stranger: str, transport: str, check: Callable[[Scene], Any]) -> None:
    """Run one check."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            talks = [
                await stack.enter_async_context(talking(server, transport, key, streaming=streaming))
                for key, streaming in (("", False), ("", True), (stranger, True))
            ]
            await check(Scene(*talks, owner, server.workspace_id))

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    "check", [check for _, check in REQUIREMENTS], ids=[f"{place} {check.__name__}" for place, check in REQUIREMENTS]
)
def test_a_requirement_holds(
    server: Server, owner: Client, stranger: str, transport: str, check: Callable[[Scene], Any]
) -> None:
    hold(server, owner, stranger, transport, check)


# What is planted, in the words of Python, and the check that must catch it.
PLANTED: dict[str, tuple[str, Callable[[Scene], Any]]] = {
    "lists ignore the status": (
        "import redkey.a2a.gateway as g; plant(g, '_state', lambda status: '')",
        requirements.a_list_is_filtered_by_status_and_time,
    ),
    "lists ignore the context": (
        "import redkey.a2a.gateway as g; w = g.Wanted\n"
        "plant(g, 'Wanted', lambda context, state, after: w('', state, after))",
        requirements.a_list_is_filtered_by_status_and_time,
    ),
    "lists ignore the time": (
        "import redkey.a2a.gateway as g; w = g.Wanted\n"
        "plant(g, 'Wanted', lambda context, state, after: w(context, state, 0))",
        requirements.a_list_is_filtered_by_status_and_time,
    ),
    "lists always have artifacts": (
        "import redkey.a2a.face as f, redkey.a2a.requests as r, msgspec; c = f.converted\n"
        "def full(value, kind):\n"
        "    found = c(value, kind)\n"
        "    return msgspec.structs.replace(found, include_artifacts=True) if kind is r.ListTasks else found\n"
        "plant(f, 'converted', full)",
        requirements.a_list_has_artifacts_only_when_asked,
    ),
    "an unknown status lists everything": (
        "import redkey.a2a.gateway as g; plant(g, '_state', lambda status: '')\n"
        "import redkey.a2a.requests as r, msgspec, typing\n"
        "class Any(r.ListTasks, frozen=True, kw_only=True): status: typing.Any = None\n"
        "import redkey.a2a.face as f; c = f.converted\n"
        "plant(f, 'converted', lambda value, kind: c(value, Any if kind is r.ListTasks else kind))",
        requirements.an_unknown_status_is_refused,
    ),
    "push configs beyond a page are lost": (
        "import redkey.services.use_cases.a2a_push as p; r = p.list_push.run\n"
        "plant(p.list_push, 'run', lambda caller, task_id: r(caller, task_id)[:100])",
        pushing.every_push_config_is_listed,
    ),
    "a receiver is looked at when it is called": (
        "import redkey.services.use_cases.a2a_push as p; plant(p, 'check_receiver', lambda *given: None)",
        pushing.a_push_config_does_not_name_this_machine,
    ),
    "whoever has a key may write": (
        "import redkey.services.use_case as u; plant(u.UseCase, 'judge', lambda self, caller: None)",
        permitted.every_operation_needs_its_scope,
    ),
    "lists are in the order of creation": (
        "import redkey.readmodel.a2a_list as l; n = l._newest\n"
        "plant(l, '_newest', lambda *a: iter(sorted(n(*a), key=lambda one: one.task_id, reverse=True)))",
        requirements.tasks_are_listed_newest_status_first,
    ),
    "pages repeat their last task": (
        "import redkey.readmodel.a2a_list as l; p = l.page\n"
        "plant(l, 'page', lambda r, t, w, before, limit: p(r, t, w, before + 1 if before else 0, limit))",
        requirements.a_list_comes_in_pages_without_gap_or_copy,
    ),
    "a send that should wait does not": (
        "import redkey.a2a.gateway as g\n"
        "async def late(self, call, sighted):\n    return sighted\n"
        "plant(g.Gateway, '_settled', late)",
        waiting.a_send_waits_until_the_task_needs_its_client,
    ),
    "a send that should return at once waits": (
        "import redkey.a2a.gateway as g; t = g.Gateway._take\n"
        "plant(g.Gateway, 'send_at_once', lambda self, call, request: None)\n"
        "async def waits(self, call, request):\n    return await self._settled(call, await t(self, call, request))\n"
        "plant(g.Gateway, '_take', waits)",
        waiting.return_immediately_does_not_wait,
    ),
    "updates come in another order": (
        "import redkey.readmodel.a2a_view as v; a = v.Lens.after\n"
        "plant(v.Lens, 'after', lambda *given: reversed([*a(*given)]))",
        waiting.a_stream_begins_with_its_task_and_tells_everything_once,
    ),
    "updates come twice": (
        "import redkey.readmodel.a2a_view as v; a = v.Lens.after\n"
        "plant(v.Lens, 'after', lambda *given: (one for told in a(*given) for one in (told, told)))",
        waiting.a_stream_begins_with_its_task_and_tells_everything_once,
    ),
    "cancelling does nothing": (
        "import redkey.services.use_cases.a2a_tasks as t\n"
        "plant(t, 'cancel_task', lambda caller, task_id: t.get_task(caller, task_id))",
        requirements.cancelling_cancels,
    ),
    "the context of a message is not looked at": (
        "import redkey.a2a.gateway as g; c = g.Gateway._continue\n"
        "import msgspec\n"
        "def blind(self, call, request, sent):\n"
        "    message = msgspec.structs.replace(request.message, context_id=None)\n"
        "    return c(self, call, msgspec.structs.replace(request, message=message), sent)\n"
        "plant(g.Gateway, '_continue', blind)",
        requirements.the_context_of_a_message_is_that_of_its_task,
    ),
    "the history forgets messages": (
        "import redkey.wire.a2a as w; s = w.snapshot\n"
        "import redkey.readmodel.a2a_view as v\n"
        "def short(*given):\n"
        "    found = s(*given); found['task']['history'] = found['task']['history'][:1]; return found\n"
        "plant(v, 'snapshot', short)",
        requirements.history_is_as_long_as_asked_for,
    ),
    "a stream that resumes begins anew": (
        "import redkey.a2a.gateway as g\n"
        "plant(g.Gateway, '_resumed', lambda self, call, name: (g.a2a_tasks.get_task(call.caller, name), 0))",
        resuming.a_subscription_resumes_after_each_of_its_events,
    ),
    "a place inside of a record is taken for its end": (
        "import redkey.a2a.gateway as g; p = g._position\nplant(g, '_position', lambda call: (p(call)[0], 0))",
        resuming.a_subscription_resumes_after_each_of_its_events,
    ),
    "a message that resumes is streamed from its beginning": (
        "import redkey.a2a.gateway as g; plant(g, '_position', lambda call: (0, 0))",
        resuming.a_streamed_message_resumes_after_each_of_its_events,
    ),
    "a place that the ledger has not reached is taken": (
        "import redkey.a2a.gateway as g; plant(g, 'check_reached', lambda caller, place: None)",
        resuming.an_event_id_that_no_stream_gave_is_refused,
    ),
    "equal message ids are one message": (
        "import redkey.a2a.gateway as g, msgspec; t = g.Gateway._take\n"
        "def same(self, call, request):\n"
        "    return t(self, msgspec.structs.replace(call, idempotency_key=request.message.message_id), request)\n"
        "plant(g.Gateway, '_take', same)\n"
        "plant(g.Gateway, 'send_at_once', lambda self, call, request: None)",
        requirements.equal_message_ids_are_two_messages,
    ),
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planting]:
    with planting(tmp_path_factory.mktemp("planted")) as running:
        yield running


@pytest.fixture(scope="module")
def planted_stranger(planted: Planting) -> str:
    return stranger_key(planted.owner)


@pytest.mark.xdist_group("a2a-planted")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught(planted: Planting, planted_stranger: str, transport: str, bug: str) -> None:
    code, check = PLANTED[bug]
    hold(planted.server, planted.owner, planted_stranger, transport, check)
    with planted.bug(code), pytest.raises(AssertionError):
        hold(planted.server, planted.owner, planted_stranger, transport, check)
