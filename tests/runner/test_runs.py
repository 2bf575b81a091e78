"""Whole runs with real processes: a server, runners, and agents that are shell scripts and Python functions."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tests.harness.scene import Scene, output, until


def _step(key: str, title: str, role: str, *upstream: str, **more: Any) -> dict[str, Any]:
    criteria = [f"{title}, and the file has at least 1 line"]
    return {"id": key, "title": title, "role": role, "dependsOn": [*upstream], "completionCriteria": criteria, **more}


PLAN: dict[str, Any] = {
    "version": "1.0",
    "name": "Four Steps",
    "roles": {"worker": {"description": "Does."}, "analyst": {"description": "Thinks."}},
    "tasks": [
        _step("intake", "The guest is known", "worker", outputs=["guest_brief"]),
        _step(
            "research",
            "The guest is researched",
            "analyst",
            "intake",
            outputs=["packet"],
            outputContract={"type": "report", "minLength": 40, "evaluate": "Does it name a source?"},
        ),
        _step("legal", "The contract is signed", "worker", "intake", outputs=["deal"]),
        _step("cover", "The cover is drawn", "worker", "intake", outputs=["cover"]),
    ],
    "policies": {"maxParallelTasks": 4, "defaultLeaseSeconds": 60, "retry": {"maxAttempts": 2, "onFailure": "reopen"}},
}

# One shell agent for three tasks: it looks at its action as any program would.
SHELL = r"""
action=$(sed -n 's/.*"action":"\([a-z_]*\)".*/\1/p' "$REDKEY_INPUT_FILE")
cp "$REDKEY_INPUT_FILE" "$SEEN/$action-$(ls "$SEEN" | wc -l).json"
case $action in
  intake)
    echo '{"cost_usd": 0.25}' > "$REDKEY_USAGE_FILE"
    echo '{"to_agent": "human", "message_type": "info", "subject": "Intake is done"}' > "$REDKEY_OUTBOX_FILE"
    cat <<'END'
INTAKE
END
    ;;
  legal)
    if grep -q 'The block was lifted' "$REDKEY_INPUT_FILE"; then cat <<'END'
SIGNED
END
    else cat <<'END'
ESCALATE
END
    fi ;;
  cover) cat <<'END'
EVIL
END
    ;;
esac
"""

PYTHON = '''
def research(given, prompt, outbox):
    """Too short at first; the findings of the verification come with the second call."""
    outbox.used(model="claude-haiku-4-5", input_tokens=1000, output_tokens=200)
    outbox.send("human", "Is example.com a source?", message_type="question", priority=2)
    assert "## Brief" in prompt and "The guest is researched" in prompt
    text = open(given["paths"]["guest_brief"]).read()
    again = any("output_short" in note for note in given.get("prior_context", []))
    if again:
        text = "According to example.com the guest is " + text + " and more."
    artifact = {"path": "out/packet.md", "operation": "create", "content": text}
    return {"success": True, "summary": "Researched.", "artifacts": [artifact], "recommendation": "proceed",
            "notes": ["seen: " + str(given["prior_context"][0]), "iteration: " + str(given["context"]["iteration"])]}
'''

EVALUATOR = r"""
cat > "$SEEN/question.json"
echo '{"cost_usd": 0.01}' > "$REDKEY_USAGE_FILE"
grep -q 'example.com' "$SEEN/question.json" && echo '{"verdict": "pass"}' || echo '{"verdict": "fail"}'
"""


def _file(path: str, content: str) -> list[dict[str, str]]:
    return [{"path": path, "operation": "create", "content": content}]


def _begin(stage: Scene) -> str:
    """Start the plan and two runners; the run's id."""
    seen = stage.directory / "seen"
    seen.mkdir()
    (stage.directory / "agents").mkdir()
    (stage.directory / "agents" / "analyst_agent.py").write_text(PYTHON)
    known = output(summary="Known.", artifacts=_file("guest_brief.md", "Piers"), notes=["Mind his cat"])
    asked = output(summary="Whose signature?", notes=["escalation_rule: 1"], recommendation="escalate")
    signed = output(summary="Signed.", artifacts=_file("deal.txt", "signed"))
    shell = SHELL.replace("INTAKE", known).replace("ESCALATE", asked).replace("SIGNED", signed)
    shell = shell.replace("EVIL", output(artifacts=_file("../../evil.txt", "gotcha")))
    stage.rk.queues.create(stage.queue)
    run = stage.rk.workflows.start(stage.queue, plan=PLAN).workflow_id
    stage.run("--role", "worker", "--exec", stage.script("agent.sh", shell), "--env", "SEEN", SEEN=str(seen))
    stage.run(
        *("--role", "analyst", "--python", "analyst_agent:research", "--python-path", str(stage.directory / "agents")),
        *("--evaluator", stage.script("judge.sh", EVALUATOR), "--env", "SEEN"),
        card="ada",
        SEEN=str(seen),
    )
    return run


def test_a_plan_of_four_tasks_is_run_and_everything_about_it_is_exact(stage: Scene) -> None:
    run = _begin(stage)

    def tasks() -> dict[str, Any]:
        return {one.plan_task_id: one for one in stage.rk.workflows.state(run).tasks}

    until(
        lambda: [tasks()[key].state for key in ("research", "legal", "cover")] == ["completed", "blocked", "blocked"],
        60,
    )
    ids = {key: one.task_id for key, one in tasks().items()}
    _check_intake(stage, ids["intake"])
    _check_research(stage, ids["research"])
    _check_cover(stage, ids["cover"])
    _check_legal(stage, ids["legal"])


def _complete(stage: Scene, task_id: str) -> dict[str, Any]:
    (event,) = [one for one in stage.rk.tasks.events(task_id) if one.type == "task.complete"]
    found: dict[str, Any] = event.data
    return found


def _check_intake(stage: Scene, task_id: str) -> None:
    done = _complete(stage, task_id)
    assert done["costUsd"] == 0.25
    assert done["verification"] == {"mechanical": "pass", "semantic": "skipped", "attempts": 1}
    assert isinstance(done["durationSeconds"], int)
    task = stage.rk.tasks.get(task_id)
    (artifact,) = task.artifacts
    assert (artifact.name, artifact.sha256) == ("guest_brief", hashlib.sha256(b"Piers").hexdigest())
    assert artifact.media_type == "text/markdown"
    assert stage.rk.content.get(artifact.sha256) == b"Piers"
    assert (task.summary, task.notes, task.output["output_ref"]) == ("Known.", "Mind his cat", artifact.artifact_id)
    made = ["task.claimed", "task.started", "task.usage_reported", "artifact.ready", "task.complete"]
    assert stage.types(task_id)[-5:] == made
    given = json.loads((stage.directory / "seen" / "intake-0.json").read_text())
    assert given["context"] == {"feature_id": task.workflow_id, "workflow": "four-steps", "iteration": 1}
    (message,) = [one for one in stage.rk.inbox.list(to="human") if one.subject == "Intake is done"]
    assert (message.sender, message.ref_task_id) == (f"agent:quinn{stage.suffix}", task_id)


def _check_research(stage: Scene, task_id: str) -> None:
    """It failed its verification once, then passed: one attempt of the task, two tries, the cost of both."""
    done = _complete(stage, task_id)
    assert done["verification"] == {"mechanical": "pass", "semantic": "pass", "attempts": 2}
    # Twice 1,000 tokens in and 200 out at 1 and 5 dollars a million, and the evaluator once.
    assert done["costUsd"] == 2 * 0.002 + 0.01
    task = stage.rk.tasks.get(task_id)
    assert task.attempt == 1
    assert task.notes.splitlines() == ["seen: Mind his cat", "iteration: 2"]
    (artifact,) = task.artifacts
    assert stage.rk.content.get(artifact.sha256).startswith(b"According to example.com")
    # Both tries asked the same question; it was sent once.
    assert len([one for one in stage.rk.inbox.list(to="human") if one.subject == "Is example.com a source?"]) == 1
    question = json.loads((stage.directory / "seen" / "question.json").read_text())
    assert question["evaluate"] == "Does it name a source?"


def _check_cover(stage: Scene, task_id: str) -> None:
    task = stage.rk.tasks.get(task_id)
    assert task.blocker is not None
    assert task.blocker.blocker_type == "verification_fail"
    assert "2 tries" in task.blocker.reason
    assert "parent directory" in task.blocker.reason
    assert task.artifacts == ()
    assert not list(stage.directory.rglob("evil.txt"))


def _check_legal(stage: Scene, task_id: str) -> None:
    """It escalated by rule 1, which is a gap for the analysts; the answer that lifts it reaches the agent."""
    task = stage.rk.tasks.get(task_id)
    assert task.blocker is not None
    assert (task.blocker.blocker_type, task.blocker.reason) == ("spec_gap", "Whose signature?")
    blocks = [one for one in stage.rk.inbox.list(to="human") if one.message_type == "task.blocked"]
    assert {one.ref_task_id for one in blocks} >= {task_id}
    stage.rk.tasks.unblock(task_id, answer="The producer's.")
    signed = stage.ends(task_id, "completed")
    assert signed.summary == "Signed."
    last = sorted((stage.directory / "seen").glob("legal-*.json"))[-1]
    assert "The block was lifted with this answer: The producer's." in json.loads(last.read_text())["prior_context"]
