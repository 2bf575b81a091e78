"""Workers act as themselves: under the key of their own agent, which is kept under the agent's name or ends with the
run."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.client import Context, RedKey
from redkey.shapes.workspaces import Key
from tests.client.conftest import Place
from tests.client.worker.crew import task, until, working

LEASE = 5


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def worker(rk: RedKey, agent: str | dict[str, object] | None) -> None:
    """Declare a worker that does nothing, in place of the one before."""
    rk._workers.clear()

    @rk.worker(queue="podcast", agent=agent, lease_seconds=LEASE)
    def handle(ctx: Context) -> None:
        ctx.progress("half", 50)


def agent_keys(rk: RedKey, place: Place) -> list[Key]:
    return [key for key in rk.keys.list(place.workspace_id) if key.agent_id]


def do_one(rk: RedKey, agent: str | dict[str, object] | None) -> str:
    worker(rk, agent)
    made = task(rk)
    with working(rk):
        until(rk, "task.complete", made)
    return made


def test_the_ledger_names_the_agent_and_not_the_key_that_registered_it(rk: RedKey) -> None:
    made = do_one(rk, "ana")
    [ana] = rk.agents.list()
    acts = [event for event in rk.tasks.events(made) if not event.type.startswith("task.cre")]
    done = {event.type: (event.actor.type, event.actor.id) for event in acts if event.actor.type != "system"}
    assert {"task.claim_attempted", "task.started", "task.progress", "task.complete"} <= done.keys()
    assert set(done.values()) == {("agent", ana.agent_id)}


def test_a_restart_goes_on_under_the_same_key(rk: RedKey, place: Place, state: Path) -> None:
    do_one(rk, "ana")
    [first] = agent_keys(rk, place)
    do_one(rk, "ana")
    assert agent_keys(rk, place) == [first]
    [file] = state.glob("redkey/agents/*/ana.json")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_revoked_key_is_replaced(rk: RedKey, place: Place) -> None:
    do_one(rk, "ana")
    [first] = agent_keys(rk, place)
    rk.keys.revoke(place.workspace_id, first.key_id)
    do_one(rk, "ana")
    assert [key.key_id == first.key_id for key in agent_keys(rk, place) if key.revoked_at is None] == [False]
    assert [agent.slug for agent in rk.agents.list()] == ["ana"]


@pytest.mark.parametrize("agent", ["ana", {"name": "ana", "version": "1"}])
def test_two_runs_at_once_under_one_name_are_two_agents(
    rk: RedKey, place: Place, agent: str | dict[str, object]
) -> None:
    rk.queues.create("podcast")
    worker(rk, agent)
    with place.client() as second, working(rk):
        wait_for_agents(rk, 1)
        worker(second, agent)
        with working(second):
            wait_for_agents(rk, 2)
    assert sorted(one.slug for one in rk.agents.list()) == ["ana", "ana-2"]


def wait_for_agents(rk: RedKey, number: int) -> None:
    """Wait until so many agents are at work."""
    stream, seen = rk.events.follow(types="agent.heartbeat", after=0), set[str]()
    while len(seen) < number:
        seen.add(next(stream).subject.id)
    stream.close()


def test_an_agent_of_one_run_leaves_no_key(rk: RedKey, place: Place, state: Path) -> None:
    do_one(rk, None)
    [key] = agent_keys(rk, place)
    assert key.revoked_at is not None
    assert [agent.active for agent in rk.agents.list()] == [False]
    assert not state.exists()


def test_a_key_that_cannot_be_kept_ends_with_the_run(rk: RedKey, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/state")
    made = do_one(rk, "ana")
    [key] = agent_keys(rk, place)
    assert key.revoked_at is not None
    assert {event.actor.type for event in rk.tasks.events(made, type="task.complete")} == {"agent"}
    assert [agent.active for agent in rk.agents.list()] == [True]


def test_an_agent_that_brings_its_own_key_gets_no_other(rk: RedKey, place: Place) -> None:
    agent = rk.agents.register(card={"name": "ana", "version": "1"}, issue_key=True)
    made = task(rk)
    with place.client(agent.api_key) as own:
        worker(own, agent.agent_id)
        with working(own):
            until(rk, "task.complete", made)
    assert len(agent_keys(rk, place)) == 1


def test_workers_of_one_run_that_name_one_agent_share_it(rk: RedKey, place: Place) -> None:
    for queue in ("podcast", "other"):

        @rk.worker(queue=queue, agent="ana", lease_seconds=LEASE)
        def handle(ctx: Context) -> None: ...

    made = [task(rk), task(rk, "other")]
    with working(rk):
        for one in made:
            until(rk, "task.complete", one)
    assert [agent.slug for agent in rk.agents.list()] == ["ana"]
    assert len(agent_keys(rk, place)) == 1
