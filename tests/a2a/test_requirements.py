"""Every requirement on every transport; and that the checks for what official kits overlook can fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.a2a import requirements
from tests.a2a.requirements import REQUIREMENTS, Scene
from tests.a2a.talk import TRANSPORTS, talking
from tests.harness.client import Client
from tests.harness.server import Server, serving


def stranger_key(owner: Client) -> str:
    """An admin key of another workspace."""
    reply = owner.post("/workspaces", {"name": "Others"})
    assert reply.status == 201, reply.text
    return str(reply.json["apiKey"])


def hold(server: Server, owner: Client, transport: str, check: Callable[[Scene], Any]) -> None:
    """Run one check."""

    async def run() -> None:
        async with AsyncExitStack() as stack:
            talks = [
                await stack.enter_async_context(talking(server, transport, key, streaming=streaming))
                for key, streaming in (("", False), ("", True), (stranger_key(owner), True))
            ]
            await check(Scene(*talks, owner))

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("check", REQUIREMENTS, ids=lambda check: check.__name__)
def test_a_requirement_holds(server: Server, owner: Client, transport: str, check: Callable[[Scene], Any]) -> None:
    hold(server, owner, transport, check)


# What is planted, in the words of Python, and the check that must catch it.
PLANTED: dict[str, tuple[str, Callable[[Scene], Any]]] = {
    "lists ignore the status": (
        "import redkey.a2a.gateway as g; g._state = lambda status: ''",
        requirements.a_list_is_filtered_by_status_and_time,
    ),
    "lists are in the order of creation": (
        "import redkey.readmodel.a2a_list as l; n = l._newest\n"
        "l._newest = lambda *a: iter(sorted(n(*a), key=lambda one: one.task_id, reverse=True))",
        requirements.tasks_are_listed_newest_status_first,
    ),
    "pages repeat their last task": (
        "import redkey.readmodel.a2a_list as l; p = l.page\n"
        "l.page = lambda r, t, w, before, limit: p(r, t, w, before + 1 if before else 0, limit)",
        requirements.a_list_comes_in_pages_without_gap_or_copy,
    ),
    "a send waits although it was told not to": (
        "import redkey.a2a.gateway as g\n"
        "async def late(self, call, sighted):\n    return sighted\n"
        "g.Gateway._settled = late",
        requirements.a_send_waits_until_the_task_needs_its_client,
    ),
    "updates come twice": (
        "import redkey.readmodel.a2a_view as v; a = v.Lens.after\n"
        "v.Lens.after = lambda *given: (one for told in a(*given) for one in (told, told))",
        requirements.a_stream_begins_with_its_task_and_tells_everything_once,
    ),
    "cancelling does nothing": (
        "import redkey.a2a.gateway as g\n"
        "async def idle(self, call, request):\n"
        "    return g.a2a_tasks.get_task(call.caller, request.id).shown\n"
        "g.Gateway.cancel_task = idle",
        requirements.cancelling_cancels,
    ),
    "the context of a message is not looked at": (
        "import redkey.a2a.gateway as g; c = g.Gateway._continue\n"
        "import msgspec\n"
        "def blind(self, call, request, sent):\n"
        "    message = msgspec.structs.replace(request.message, context_id=None)\n"
        "    return c(self, call, msgspec.structs.replace(request, message=message), sent)\n"
        "g.Gateway._continue = blind",
        requirements.the_context_of_a_message_is_that_of_its_task,
    ),
    "the history forgets messages": (
        "import redkey.wire.a2a as w; s = w.snapshot\n"
        "import redkey.readmodel.a2a_view as v\n"
        "def short(*given):\n"
        "    found = s(*given); found['task']['history'] = found['task']['history'][:1]; return found\n"
        "v.snapshot = short",
        requirements.history_is_as_long_as_asked_for,
    ),
    "equal message ids are one message": (
        "import redkey.a2a.gateway as g, msgspec; t = g.Gateway._take\n"
        "def same(self, call, request):\n"
        "    return t(self, msgspec.structs.replace(call, idempotency_key=request.message.message_id), request)\n"
        "g.Gateway._take = same\n"
        "g.Gateway.send_at_once = lambda self, call, request: None",
        requirements.equal_message_ids_are_two_messages,
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught(bug: str, tmp_path: Path) -> None:
    code, check = PLANTED[bug]
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "sitecustomize.py").write_text(code)
    with (
        serving(tmp_path, environment={"PYTHONPATH": str(planted)}) as server,
        server.client() as owner,
        pytest.raises(AssertionError),
    ):
        hold(server, owner, "JSONRPC", check)
