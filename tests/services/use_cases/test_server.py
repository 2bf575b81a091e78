"""The server itself by its use cases: alive, ready, and not ready any more once it stops."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from redkey import __version__
from redkey.commands.decision import Refused
from redkey.services.use_case import use_case
from redkey.services.use_cases.agents import register_card
from redkey.services.use_cases.claims import claim_task
from redkey.services.use_cases.queues import create_queue
from redkey.services.use_cases.server import find_ids, readyz
from redkey.services.use_cases.tasks import create_task
from redkey.shapes.agents import AgentRegistration
from redkey.shapes.claims import ClaimRequest
from redkey.shapes.queues import NewQueue
from redkey.shapes.server import HEALTHZ, Health, healthz
from redkey.shapes.tasks import NewTask
from tests.harness.callers import Callers, with_callers

PATIENCE_SECONDS = 60


def test_a_server_is_ready_until_it_stops(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        nobody = callers.caller()
        ready = await callers.call(readyz, caller=nobody)
        assert (ready.status, ready.store) == ("ready", callers.store.engine)
        assert ready.version == __version__
        assert abs((datetime.now(UTC) - datetime.fromisoformat(ready.time)).total_seconds()) < PATIENCE_SECONDS
        callers.app.begin_stop()
        with pytest.raises(Refused) as caught:
            await callers.call(readyz, caller=nobody)
        assert (caught.value.status, caught.value.code) == (503, "stopping")
        assert await callers.call(use_case(HEALTHZ)(healthz), caller=nobody) == Health(status="ok")

    with_callers(tmp_path, test)


def test_ids_are_found_by_their_beginning_in_the_callers_workspace_alone(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        agent = await callers.call(register_card, AgentRegistration(card={"name": "ada"}))
        found = await callers.call(find_ids, agent.agent_id[:8])
        assert (found.items, found.complete) == ((agent.agent_id,), True)
        assert (await callers.call(find_ids, agent.agent_id)).items == (agent.agent_id,)
        assert (await callers.call(find_ids, "agt_ZZ")).items == ()
        await callers.call(create_queue, NewQueue(name="jobs"))
        task = await callers.call(create_task, "jobs", NewTask(title="Write"))
        claim = await callers.call(claim_task, task.task_id, ClaimRequest(agent_id=agent.agent_id))
        assert (await callers.call(find_ids, claim.claim_id[:20])).items == (claim.claim_id,)
        assert (await callers.call(find_ids, "clm_ZZ")).items == ()
        event = agent.event_id
        for beginning in (event[:12], event[:-1], event):
            assert event in (await callers.call(find_ids, beginning)).items
        assert (await callers.call(find_ids, event)).items == (event,)
        assert (await callers.call(find_ids, "evt_ZZZZZZZZ")).items == ()
        for short in ("evt_", event[:11], event + "0"):
            with pytest.raises(Refused) as caught:
                await callers.call(find_ids, short)
            assert caught.value.code == "prefix_short"
        with pytest.raises(Refused) as caught:
            await callers.call(find_ids, "key_0")
        assert caught.value.code == "prefix_invalid"

    with_callers(tmp_path, test)
