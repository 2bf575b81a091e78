"""Several coding agents on one repository: every commit passes its checks, nothing is lost, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.scene import Runner, Scene, output
from tests.runner.repository import git, make_repository

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "parallel-coding"
TASKS, AT_ONCE = (40, 4) if LONG else (6, 2)


def shop(stage: Scene) -> Path:
    """A repository whose main branch has an empty shop, and its files checked out."""
    origin = make_repository(stage.directory / "shop")
    (origin / "items.txt").write_text("")
    (origin / "check.py").write_text((EXAMPLE / "check.py").read_text())
    (origin / "items").mkdir()
    (origin / "items" / "first.txt").write_text("first\n")
    (origin / "items.txt").write_text("first\n")
    git(origin, "add", ".")
    git(origin, "commit", "-q", "-m", "Open the shop")
    return origin


def options(stage: Scene, origin: Path, name: str, *more: str) -> list[str]:
    card = str(stage.card(name))
    place = ["--work", str(stage.directory / "work"), "--memory", "off", "--lease", "5"]
    coding = ["--repo", str(origin), "--merge-into", "main", "--check", f"items={sys.executable} check.py"]
    return ["--card", card, "--queue", stage.queue, *place, *coding, *more]


def start(stage: Scene, origin: Path, name: str) -> Runner:
    agent = f"{sys.executable} {EXAMPLE / 'agent.py'}"
    return stage.start(options(stage, origin, name, "--concurrency", str(AT_ONCE), "--exec", agent))


def test_work_of_many_lands_one_after_the_other_though_runners_are_killed(stage: Scene) -> None:
    origin = shop(stage)
    runners = {name: start(stage, origin, name) for name in ("ada", "bob")}
    items = [f"item{number:02}" for number in range(TASKS)]
    added = subprocess.run(
        [sys.executable, str(EXAMPLE / "add_items.py"), stage.queue, *items],
        env={**os.environ, "REDKEY_URL": stage.server.url, "REDKEY_API_KEY": stage.server.key},
        check=True,
        capture_output=True,
        text=True,
    )
    tasks = added.stdout.split()

    def landed() -> int:
        return int(git(origin, "rev-list", "--count", "main")) - 2

    for count, name in ((1, "ada"), (max(2, TASKS // 2), "bob")):
        stage.wait(lambda count=count: landed() >= count, 300, *tasks)
        runners[name].stop(signal.SIGKILL)
        runners[name] = start(stage, origin, name)
    stage.wait(lambda: all(stage.state(task_id) == "completed" for task_id in tasks), 900 if LONG else 300, *tasks)

    commits = git(origin, "rev-list", "--reverse", "main").split()
    assert len(commits) == TASKS + 2
    named = [
        line.split()[1] for line in git(origin, "log", "--format=%b", "main").splitlines() if "RedKey-Task" in line
    ]
    assert sorted(named) == sorted(tasks)
    # The files that are checked out follow the branch.
    assert git(origin, "status", "--porcelain") == ""
    assert sorted((origin / "items.txt").read_text().split()) == sorted(["first", *items])
    for commit in commits[1:]:
        git(origin, "checkout", "-q", commit)
        subprocess.run([sys.executable, "check.py"], cwd=origin, check=True)
    for runner in runners.values():
        assert runner.stop() == 0
    assert list((stage.directory / "work" / "places").iterdir()) == []
    (clone,) = (stage.directory / "work" / "repositories").glob("*.git")
    assert len(git(clone, "worktree", "list").splitlines()) == 1
    notes = stage.rk.tasks.get(tasks[0]).notes
    assert "branch: main" in notes
    assert next(line for line in notes.splitlines() if line.startswith("commit: ")).split()[1] in commits


def test_a_conflict_is_told_and_the_work_before_it_is_there(stage: Scene) -> None:
    """Somebody else pushes between the agent's beginning and its end: it begins anew and sees both."""
    origin = shop(stage)
    script = f"""
if grep -q conflict "$REDKEY_INPUT_FILE"; then
  grep -q 'items.txt' "$REDKEY_INPUT_FILE" && grep -q '+mine' .redkey/previous.patch \\
    && grep -q theirs items.txt && touch ok
else
  cd {origin} && touch items/theirs.txt && echo theirs > new && cat items.txt >> new && mv new items.txt \\
    && git add . && git -c user.name=x -c user.email=x@example.com commit -q -m theirs && cd - >/dev/null
fi
touch items/mine.txt; echo mine > new; cat items.txt >> new; mv new items.txt
echo '{output(summary="Mine.")}'
"""
    stage.start(options(stage, origin, "ada", "--exec", stage.script("agent.sh", script)))
    task = stage.ends(stage.task("Add mine"), "completed")
    assert (origin / "items.txt").read_text().split() == ["mine", "theirs", "first"]
    assert (origin / "ok").exists()
    (event,) = [one for one in stage.rk.tasks.events(task.task_id) if one.type == "task.complete"]
    assert event.data["verification"]["attempts"] == 2


def test_checks_hold_work_back_and_what_is_asked_for_must_be_there(stage: Scene) -> None:
    origin = shop(stage)
    script = f"touch items/orphan.txt; echo '{output()}'"
    stage.start(options(stage, origin, "ada", "--exec", stage.script("agent.sh", script)))
    task = stage.ends(stage.task("Add an orphan"), "blocked")
    assert task.blocker.blocker_type == "verification_fail"
    assert "check_failed: items ended with exit code 1" in task.blocker.reason
    task = stage.ends(stage.task("Linted", completion_criteria=["check: lint"]), "blocked")
    assert "the check 'lint'" in task.blocker.reason
    assert git(origin, "rev-list", "--count", "main") == "2"


def test_files_that_somebody_changed_are_not_overwritten(stage: Scene) -> None:
    origin = shop(stage)
    (origin / "items.txt").write_text("first\nmy own unfinished work\n")
    stage.start(options(stage, origin, "ada", "--exec", f"{sys.executable} {EXAMPLE / 'agent.py'}"))
    task = stage.ends(stage.task("Add pear", input={"item": "pear"}), "blocked")
    assert "does not take the work" in task.blocker.reason
    assert (origin / "items.txt").read_text() == "first\nmy own unfinished work\n"


@pytest.mark.parametrize("pushed", [True, False])
def test_a_pull_request_is_pushed_where_that_is_wanted(pushed: bool, stage: Scene) -> None:
    origin = shop(stage)
    card, work = str(stage.card("ada")), str(stage.directory / "work")
    agent = f"{sys.executable} {EXAMPLE / 'agent.py'}"
    more = ["--push"] if pushed else []
    stage.start(["--card", card, "--queue", stage.queue, "--work", work, "--repo", str(origin), "--exec", agent, *more])
    task = stage.ends(stage.task("Add plum", input={"item": "plum"}), "completed")
    said = dict(line.split(": ", 1) for line in task.notes.splitlines())
    assert git(origin, "rev-list", "--count", "main") == "2"
    if pushed:
        assert said["pushed"] == f"{origin} {said['branch']}"
        assert git(origin, "rev-parse", said["branch"]) == said["commit"]
    else:
        assert git(origin, "branch", "--format=%(refname:short)") == "main"
        (clone,) = (stage.directory / "work" / "repositories").glob("*.git")
        assert git(clone, "rev-parse", said["branch"]) == said["commit"]


def test_a_repository_that_is_not_allowed_blocks_the_task(stage: Scene) -> None:
    stage.run("--exec", f"echo '{output()}'")
    env = {"client_id": "test", "task_id": "0.0.1", "repo_url": "https://example.com/x.git"}
    payload = {
        "goal": "It is done.",
        "constraints": [],
        "acceptance_criteria": ["It is."],
        "output_contract": {"type": "message", "output_ref_required": False, "min_length": 0},
        "escalation_triggers": [],
        "env": env,
    }
    brief = {"wire": "1.0", "type": "brief", "sender": "system", "ts": "2026-04-28T00:00:00Z", "payload": payload}
    task = stage.ends(stage.task(brief=brief), "blocked")
    assert "not among those this runner may clone" in task.blocker.reason
