"""Several coding agents on one repository: every commit passes its checks, nothing is lost, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.samples import brief_asking
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


def test_work_of_many_lands_one_after_the_other_though_runners_are_killed(stage: Scene, record_property: Any) -> None:
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
        stage.wait(lambda count=count: landed() >= count, 900 if LONG else 300, *tasks)
        runners[name].stop(signal.SIGKILL)
        runners[name] = start(stage, origin, name)
    stage.wait(lambda: all(stage.state(task_id) == "completed" for task_id in tasks), 900 if LONG else 300, *tasks)

    commits = git(origin, "rev-list", "--reverse", "main").split()
    assert len(commits) == TASKS + 2
    named = [
        line.split()[1] for line in git(origin, "log", "--format=%b", "main").splitlines() if "RedKey-Task" in line
    ]
    assert sorted(named) == sorted(tasks)
    # All tasks change the same line of one file, so most of them had conflicts, and were done again.
    ended = [one for task in tasks for one in stage.rk.tasks.events(task) if one.type == "task.complete"]
    conflicts = sum(one.data["verification"]["attempts"] - 1 for one in ended)
    assert conflicts >= 1
    record_property("proven", f"{TASKS} tasks of {2 * AT_ONCE} agents landed after {conflicts} conflicts")
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
    """Somebody else pushes between the agent's beginning and its end: it begins anew and sees both.

    It has one try and one attempt, and neither is used up by the conflict.
    """
    origin = shop(stage)
    script = f"""
if grep -q conflict "$REDKEY_INPUT_FILE"; then
  grep -q 'items.txt' "$REDKEY_INPUT_FILE" && grep -q '+mine' .redkey/previous.patch \\
    && sed -n '/^## Brief/,$p' "$REDKEY_PROMPT_FILE" | grep -q '> .*conflicts in items.txt' \\
    && grep -q theirs items.txt && touch ok
else
  cd {origin} && touch items/theirs.txt && echo theirs > new && cat items.txt >> new && mv new items.txt \\
    && git add . && git -c user.name=x -c user.email=x@example.com commit -q -m theirs && cd - >/dev/null
fi
touch items/mine.txt; echo mine > new; cat items.txt >> new; mv new items.txt
echo '{output(summary="Mine.")}'
"""
    stage.start(options(stage, origin, "ada", "--tries", "1", "--exec", stage.script("agent.sh", script)))
    task = stage.ends(stage.task("Add mine", retry={"maxAttempts": 1}), "completed")
    assert task.attempt == 1
    assert (origin / "items.txt").read_text().split() == ["mine", "theirs", "first"]
    assert (origin / "ok").exists()
    (event,) = [one for one in stage.rk.tasks.events(task.task_id) if one.type == "task.complete"]
    assert event.data["verification"]["attempts"] == 2


def test_work_that_conflicts_again_and_again_gets_its_turn(stage: Scene) -> None:
    """Another runner lands before each end of this agent's work, as long as the merge queue is free."""
    origin = shop(stage)
    rival = f"""
cd {origin} && touch items/r$1.txt && echo r$1 > new && cat items.txt >> new && mv new items.txt \\
  && git add . && git -c user.name=x -c user.email=x@example.com commit -q -m r$1
"""
    script = f"""
n=$(cat {stage.directory}/n 2>/dev/null || echo 0); echo $((n + 1)) > {stage.directory}/n
queue=$(ls {stage.directory}/work/repositories/*.queue 2>/dev/null || echo {stage.directory}/none)
flock --nonblock "$queue" {stage.script("rival.sh", rival)} $n
touch items/mine.txt; echo mine > new; cat items.txt >> new; mv new items.txt
echo '{output(summary="Mine.")}'
"""
    agent = stage.script("agent.sh", script)
    stage.start(options(stage, origin, "ada", "--tries", "1", "--exec", agent))
    task = stage.ends(stage.task("Add mine", retry={"maxAttempts": 1}), "completed")
    assert (origin / "items.txt").read_text().split() == ["mine", "r2", "r1", "r0", "first"]
    assert task.attempt == 1


def slow_files(origin: Path, place: Path) -> None:
    """Let the origin wait for the file `go` whenever it writes slow.txt; it says so by the file `writing`."""
    (origin / ".gitattributes").write_text("items/slow.txt filter=slow\n")
    git(origin, "add", ".")
    git(origin, "commit", "-q", "-m", "A slow file")
    wait = f"touch {place}/writing; until [ -e {place}/go ]; do sleep 0.02; done; cat"
    git(origin, "config", "filter.slow.smudge", wait)


def test_a_push_that_has_begun_is_finished_though_its_runner_is_killed(stage: Scene) -> None:
    """The runner dies while the files of the branch that is checked out are being written; another one is waiting."""
    origin, place = shop(stage), stage.directory
    slow_files(origin, place)
    script = stage.script("agent.sh", f"{sys.executable} {EXAMPLE / 'agent.py'} && echo $$ >> {place}/agents")
    first = stage.start(options(stage, origin, "ada", "--exec", script))
    slow = stage.task("Add slow", input={"item": "slow"})
    stage.wait((place / "writing").exists, 60)
    first.stop(signal.SIGKILL)
    stage.start(options(stage, origin, "bob", "--exec", script))
    quick = stage.task("Add quick", input={"item": "quick"})
    stage.wait(lambda: len((place / "agents").read_text().split()) >= 2, 60)
    (place / "go").touch()
    stage.ends(quick, "completed")
    assert stage.ends(slow, "completed").summary == "The work was merged before."
    assert sorted((origin / "items.txt").read_text().split()) == ["first", "quick", "slow"]
    assert git(origin, "status", "--porcelain") == ""


def test_a_branch_that_moves_while_its_files_are_written_is_tried_again(stage: Scene) -> None:
    """The files of the refused push would stay, and every later push would be refused because of them."""
    origin, place = shop(stage), stage.directory
    slow_files(origin, place)
    stage.start(options(stage, origin, "ada", "--exec", f"{sys.executable} {EXAMPLE / 'agent.py'}"))
    slow = stage.task("Add slow", input={"item": "slow"})
    stage.wait((place / "writing").exists, 60)
    other = git(origin, "commit-tree", "main^{tree}", "-p", "main", "-m", "By somebody else")
    git(origin, "update-ref", "refs/heads/main", other)
    (place / "go").touch()
    stage.ends(slow, "completed")
    assert git(origin, "rev-parse", "main~1") == other
    assert git(origin, "status", "--porcelain") == ""
    assert (origin / "items.txt").read_text().split() == ["slow", "first"]


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


def test_checks_run_at_the_top_of_the_repository_whatever_folder_is_worked_in(stage: Scene) -> None:
    origin = shop(stage)
    script = f"pwd > {stage.directory}/where; touch deep.txt; echo deep >> ../items.txt; echo '{output()}'"
    more = ["--check", "where=test -e README.md && test -d items", "--exec", stage.script("agent.sh", script)]
    stage.start(options(stage, origin, "ada", *more))
    brief = brief_asking(type="pr")
    brief["payload"]["env"]["worktree_path"] = "items"
    stage.ends(stage.task("Add deep", brief=brief), "completed")
    assert (stage.directory / "where").read_text().strip().endswith("/items")
    assert (origin / "items" / "deep.txt").exists()
    assert git(origin, "status", "--porcelain") == ""


@pytest.mark.parametrize("pushed", [True, False])
def test_worktrees_may_be_of_the_users_own_clone(pushed: bool, stage: Scene) -> None:
    """The branch of a pull request is in the user's clone at once; `--push` sends it to where the clone comes from."""
    origin, clone = shop(stage), stage.directory / "mine"
    git(stage.directory, "clone", "-q", str(origin), str(clone))
    work, agent = stage.directory / "work", f"{sys.executable} {EXAMPLE / 'agent.py'}"
    place = ["--card", str(stage.card("ada")), "--queue", stage.queue, "--work", str(work), "--memory", "off"]
    more = ["--push"] if pushed else []
    runner = stage.start([*place, "--repo", str(clone), "--own-clone", "--exec", agent, *more])
    task = stage.ends(stage.task("Add plum", input={"item": "plum"}), "completed")
    said = dict(line.split(": ", 1) for line in task.notes.splitlines())
    assert git(clone, "show", f"{said['branch']}:items/plum.txt") == "plum"
    assert git(clone, "log", "-1", "--format=%an", said["branch"]) == "RedKey agent"
    assert said.get("pushed") == (f"{origin} {said['branch']}" if pushed else None)
    assert (said["branch"] in git(origin, "branch", "--format=%(refname:short)")) == pushed
    # One that leaves nothing of its own leaves no branch.
    stage.ends(stage.task("Add nothing"), "failed")
    assert git(clone, "branch", "--format=%(refname:short)").split() == ["main", said["branch"]]
    # The user's own files are as they were, and no worktree is left, also of a runner that is killed.
    assert git(clone, "status", "--porcelain") == ""
    runner.stop(signal.SIGKILL)
    assert not list((work / "repositories").glob("*.git"))
    assert len(git(clone, "worktree", "list").splitlines()) == 1


def test_a_killed_runner_leaves_no_worktree_in_the_users_own_clone_for_long(stage: Scene) -> None:
    clone = shop(stage)
    work = str(stage.directory / "work")
    place = ["--card", str(stage.card("ada")), "--queue", stage.queue, "--work", work, "--memory", "off"]
    started = stage.directory / "started"
    first = stage.start([*place, "--repo", str(clone), "--own-clone", "--exec", f"touch {started}; exec sleep 600"])
    stage.task("Add plum")
    stage.wait(started.exists, 60)
    first.stop(signal.SIGKILL)
    assert len(git(clone, "worktree", "list").splitlines()) == 2
    stage.start([*place, "--repo", str(clone), "--own-clone", "--exec", "true"]).stop()
    assert len(git(clone, "worktree", "list").splitlines()) == 1


def test_an_own_clone_must_be_there(stage: Scene) -> None:
    folder = stage.directory / "folder"
    folder.mkdir()
    for repository, code in ((str(folder), "repository_missing"), ("https://example.com/x.git", "clone_missing")):
        runner = stage.begin(
            ["--card", str(stage.card("ada")), "--queue", "q", "--work", str(stage.directory / "w"), "--exec", "true",
             "--repo", repository, "--own-clone"]
        )  # fmt: skip
        assert runner.process.wait(60) == 1
        assert f"[{code}]" in runner.log()


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
