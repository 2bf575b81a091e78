"""How often a task is tried that says nothing itself: by the runner's default, or by the policy of the workspace."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from tests.harness.scene import Scene, output, scene
from tests.harness.server import serving


def _failing(stage: Scene) -> list[str]:
    """The options of an agent that fails and counts how often it was started."""
    agent = stage.script("agent.sh", f"echo x >> {stage.directory}/runs; echo '{output(success=False)}'")
    place = ["--work", str(stage.directory / "work"), "--memory", "off"]
    return ["--card", str(stage.card("quinn")), "--queue", stage.queue, *place, "--exec", agent]


def _runs(stage: Scene) -> int:
    return len((stage.directory / "runs").read_text().split())


def test_a_queue_that_the_runner_creates_has_three_attempts(stage: Scene) -> None:
    stage.start(_failing(stage))
    assert stage.ends(stage.task(), "failed").attempt == 3
    assert _runs(stage) == 3


def test_a_runner_says_that_the_tasks_of_a_queue_are_tried_once(stage: Scene) -> None:
    stage.rk.queues.create(stage.queue)
    runner = stage.start(_failing(stage))
    assert f"redkey queue update {stage.queue} --max-attempts 3" in runner.log()
    assert stage.ends(stage.task(), "failed").attempt == 1
    stage.rk.queues.update(stage.queue, max_attempts=3)
    assert stage.ends(stage.task(), "failed").attempt == 3


def test_the_policy_of_the_workspace_is_followed(tmp_path: Path) -> None:
    with serving(tmp_path) as server, scene(tmp_path, server) as stage:
        stage.rk.workspaces.set_policy(server.workspace_id, retry={"maxAttempts": 2, "delaySeconds": 1, "backoff": 1})
        runner = stage.start(_failing(stage))
        assert "--max-attempts" not in runner.log()
        assert stage.rk.queues.get(stage.queue).max_attempts == 1
        task = stage.ends(stage.task(), "failed")
        assert (task.attempt, _runs(stage)) == (2, 2)
        events = stage.rk.tasks.events(task.task_id)
        first, second = (datetime.fromisoformat(one.timestamp) for one in events if one.type == "task.failed")
        assert second - first >= timedelta(seconds=1)
