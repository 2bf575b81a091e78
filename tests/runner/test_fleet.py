"""Fleets: several agents from one file, started again when they crash, stopped together, never left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from redkey.errors import ConfigRefused
from redkey.runner.fleet import Fleet
from redkey.runner.spec import read_fleet
from tests.harness.scene import Runner, Scene, output, until
from tests.runner.processes import PATIENCE_SECONDS, gone

FLEET = """
[defaults]
queue = "{queue}"
memory = "off"
work = "work"

[agents.quinn]
card = "{quinn}"
exec = ["sh", "{agent}"]

[agents.ada]
card = "{ada}"
exec = "cat {answer}"
roles = ["analyst"]
"""


def _fleet(stage: Scene) -> Path:
    agent, answer = stage.directory / "agent.sh", stage.directory / "answer.json"
    answer.write_text(output(summary="Done."))
    agent.write_text(f"cat {answer}\n")
    path = stage.directory / "fleet.toml"
    names = {"quinn": stage.card("quinn").name, "ada": stage.card("ada").name}
    path.write_text(FLEET.format(queue=stage.queue, agent=agent, answer=answer, **names))
    return path


def _standings(fleet: Runner) -> dict[str, dict]:
    """The last word on each agent, from whole lines only."""
    lines = fleet.log().rpartition("\n")[0].splitlines()
    told = [json.loads(line) for line in lines if line.startswith('{"name"')]
    return {one["name"]: one for one in told}


def _is_idle(fleet: Runner) -> bool:
    """True when both agents wait for work. Until both have reported, one of them may not have started yet."""
    return [one["state"] for one in _standings(fleet).values()] == ["idle", "idle"]


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_fleet_runs_restarts_who_crashed_and_stops_cleanly(stage: Scene) -> None:
    fleet = stage.begin(["--fleet", str(_fleet(stage))])
    until(lambda: _is_idle(fleet), PATIENCE_SECONDS)
    tasks = [stage.task(f"Number {number} is done") for number in range(3)]
    tasks.append(stage.task("Analysed", required_roles=["analyst"]))
    for task_id in tasks:
        stage.ends(task_id, "completed")
    before = _children(fleet.process.pid)
    assert len(before) == 2
    victim = before[0]
    os.kill(victim, signal.SIGKILL)
    until(lambda: sum(one["crashes"] for one in _standings(fleet).values()) == 1, PATIENCE_SECONDS)
    until(lambda: _is_idle(fleet) and len(_children(fleet.process.pid)) == 2, PATIENCE_SECONDS)
    stage.ends(stage.task("One more"), "completed")
    after = _children(fleet.process.pid)
    assert fleet.stop() == 0
    assert all(gone(pid) for pid in after)
    standings = _standings(fleet)
    assert {(one["state"], one["last"]) for one in standings.values()} == {("stopped", "")}
    assert sum(one["verified"] for one in standings.values()) == 5


@pytest.mark.parametrize(("code", "last"), [(0, ""), (3, "careful")])
def test_a_complaint_is_the_last_word_of_an_agent_that_did_not_stop_in_good_order(
    code: int, last: str, tmp_path: Path
) -> None:
    """Complaints and events come by two pipes: a warning from before an event may be read after it."""
    go = tmp_path / "go"
    ready = '{"agent":"x","event":"ready","at":""}'
    complain = f"while [ ! -e {go} ]; do sleep 0.01; done; echo careful >&2"
    script = f"trap 'kill $!; exit {code}' TERM; echo '{ready}'; {complain}; sleep 600 & wait"

    async def scene() -> None:
        fleet = Fleet(["x"], lambda name: ["sh", "-c", script])
        running = asyncio.create_task(fleet.run())
        standing = fleet.agents["x"]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while standing.state != "idle":
                await asyncio.sleep(0.01)
            go.touch()
            while standing.last != "careful":
                await asyncio.sleep(0.01)
        fleet.stop()
        await running
        assert (standing.state, standing.last) == ("stopped", last)

    asyncio.run(scene())


def test_a_killed_fleet_leaves_nobody_behind(stage: Scene) -> None:
    fleet = stage.begin(["--fleet", str(_fleet(stage))])
    until(lambda: _is_idle(fleet), PATIENCE_SECONDS)
    agents = _children(fleet.process.pid)
    fleet.stop(signal.SIGKILL)
    assert len(agents) == 2
    assert all(gone(pid) for pid in agents)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "fleet file has"),
        ("[", "not TOML"),
        ("[agents]", "fleet file has"),
        ("[agents.x]\nqueue = 'q'\ncard = 'c'", "one of exec"),
        ("[agents.x]\nqueue = 'q'\nexec = 'x'", "card, or a persona"),
        ("[agents.x]\nqueue = 'q'\nexec = 'x'\npersona = 'p'", "needs a name"),
        ("[agents.x]\nqueue = 'q'\nexec = 'x'\ncard = 'c'\nleese = 3", "agents.x"),
        ("[agents.x]\nqueue = 'q'\nexec = 'x'\ncard = 'c'\nlease_seconds = 1", "agents.x"),
        ("[other]\n[agents.x]\nqueue = 'q'", "only the tables"),
    ],
)
def test_a_fleet_file_that_is_wrong_says_where(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text(text)
    with pytest.raises(ConfigRefused, match=words):
        read_fleet(tmp_path / "fleet.toml")


def test_paths_of_a_fleet_file_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "fleet.toml").write_text("[agents.x]\nqueue = 'q'\nexec = 'x'\ncard = 'c.json'\nskills_dirs = ['s']")
    spec = read_fleet(tmp_path / "fleet.toml")["x"]
    assert (spec.card, spec.skills_dirs) == (str(tmp_path / "c.json"), (str(tmp_path / "s"),))


def test_a_broken_agent_is_not_started_again_and_shows_why(stage: Scene) -> None:
    path = _fleet(stage)
    broken = path.read_text().replace(f'exec = "cat {stage.directory / "answer.json"}"', 'exec = "no-such-program"')
    path.write_text(broken)
    fleet = stage.begin(["--fleet", str(path)])
    until(lambda: _standings(fleet).get("ada", {}).get("state") == "broken", PATIENCE_SECONDS)
    ada = _standings(fleet)["ada"]
    assert (ada["crashes"], "no-such-program" in ada["last"]) == (0, True)
    # The others go on.
    stage.ends(stage.task("Number 1 is done"), "completed")
    assert fleet.stop() == 0
    path.write_text(broken.replace('exec = ["sh",', 'exec = ["no-such-shell",'))
    alone = stage.begin(["--fleet", str(path)])
    assert alone.process.wait(60) == 1
    assert "no agent of the fleet can be started" in alone.log()
