"""How people use the runner: what the commands show, keys with little power, worktrees, memories, personas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.runner.spec import read_fleet
from redkey.wire import files
from tests.harness.samples import brief_asking
from tests.harness.scene import Scene, output, until
from tests.runner.repository import git, make_repository

QUINN = str(files.root() / "definitions" / "cards" / "quinn.json")


def _call(stage: Scene | None, *arguments: str) -> Result:
    environment = {"REDKEY_URL": stage.server.url, "REDKEY_API_KEY": stage.server.key} if stage else {}
    return CliRunner().invoke(main, list(arguments), env=environment)


def test_the_shown_prompt_is_byte_for_byte_what_the_agent_gets(stage: Scene) -> None:
    """Also of a plan's task, with unread messages and memories."""
    contract = {"type": "report", "minLength": 3}
    plan: dict[str, Any] = {
        "version": "1.0",
        "name": "one",
        "roles": {"solo": {"description": "x"}},
        "tasks": [
            {
                "id": "only",
                "title": "The report is written",
                "role": "solo",
                "dependsOn": [],
                "outputs": ["report"],
                "outputContract": contract,
                "completionCriteria": ["It names 3 sources"],
            }
        ],
        "policies": {"maxParallelTasks": 1, "retry": {"maxAttempts": 1, "onFailure": "fail"}},
    }
    stage.rk.queues.create(stage.queue)
    card, work = stage.card("quinn"), stage.directory / "work-quinn"
    agent = stage.rk.agents.register(card=json.loads(card.read_text())).agent_id
    stage.rk.inbox.send(agent, "Mind the gap", body="Twice.", priority=2)
    run = stage.rk.workflows.start(stage.queue, plan=plan)
    task_id = stage.rk.workflows.state(run.workflow_id).tasks[0].task_id
    shown = _call(
        stage, "prompt", "show", "--card", str(card), "--task", task_id, "--work", str(work), "--memory", "words"
    )
    assert shown.exit_code == 0, shown.output
    assert "## Inbox\n\nMessage 1, priority 2, info" in shown.stdout
    said = output(artifacts=[{"path": "report.md", "operation": "create", "content": "Long."}])
    (stage.directory / "said.json").write_text(said)
    stage.run(
        "--role",
        "solo",
        "--exec",
        f'cp "$REDKEY_PROMPT_FILE" {stage.directory}/prompt; cat {stage.directory}/said.json',
    )
    stage.ends(task_id, "completed")
    assert (stage.directory / "prompt").read_text() == shown.stdout
    again = _call(
        stage, "prompt", "show", "--card", str(card), "--task", task_id, "--work", str(work), "--memory", "words"
    )
    assert "Message 1" not in again.stdout
    # What was done is remembered.
    assert "Memory 1" in again.stdout
    assert "> The report is written" in again.stdout


def test_a_budget_is_told_beside_the_prompt(stage: Scene) -> None:
    task_id = stage.task("It is short")
    card = stage.card("quinn")
    agent = stage.rk.agents.register(card=json.loads(card.read_text())).agent_id
    stage.rk.inbox.send(agent, "Long", body="words " * 400)
    arguments = (
        "prompt",
        "show",
        "--card",
        str(card),
        "--task",
        task_id,
        "--memory",
        "off",
        "--work",
        str(stage.directory),
    )
    whole = _call(stage, *arguments, "--json")
    tokens = json.loads(whole.stdout)["tokens"]
    less = _call(stage, *arguments, "--budget", str(tokens - 1))
    assert "left out for the budget: message msg_" in less.stderr
    none = _call(stage, *arguments, "--budget", "10")
    assert (none.exit_code, "[prompt_too_large]" in none.stderr) == (1, True)


def test_cards_and_contracts_are_shown() -> None:
    shown = _call(None, "card", "show", QUINN)
    assert shown.stdout.startswith("You are Quinn. I implement tasks")
    assert "## When to Escalate\n- Rule 1: " in shown.stdout
    assert json.loads(_call(None, "card", "show", QUINN, "--json").stdout)["identity"]["slug"] == "quinn"
    listed = _call(None, "contract", "list").stdout
    assert {"code_commit", "output_ref_file"} <= set(listed.split())
    lines = _call(None, "contract", "list", "--json").stdout.splitlines()
    assert {json.loads(line)["slug"] for line in lines} >= {"code_commit", "review_findings"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 1, "one of exec"),
        (("--queue", "q"), 1, "one of exec"),
        (("--queue", "q", "--exec", "x"), 1, "card, or a persona"),
        (("--queue", "q", "--exec", "x", "--python", "a:b", "--card", QUINN), 1, "one of exec"),
        (("--queue", "q", "--exec", "true", "--card", QUINN, "--skill", "no-such-skill"), 1, "no-such-skill"),
        (("--queue", "q", "--python", "nonsense", "--card", QUINN), 1, "module:function"),
        (("--queue", "q", "--anthropic", "--card", QUINN), 1, "ANTHROPIC_API_KEY"),
        (("--queue", "q", "--exec", "x", "--card", __file__), 1, "json_"),
        (("--fleet", __file__), 1, "not TOML"),
        (("--fleet", __file__, "--queue", "q"), 2, "in its file"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_claimed(
    arguments: tuple[str, ...], code: int, words: str, stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stage.directory)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    ended = _call(stage, "run", *arguments)
    assert (ended.exit_code, words in ended.stderr) == (code, True), ended.output


def test_a_worktree_and_a_pull_request(stage: Scene) -> None:
    origin = make_repository(stage.directory / "origin")
    script = """
set -e
git config user.name Test; git config user.email test@example.com
echo change > change.txt; git add .; git commit -q -m Change
said='{"success": true, "summary": "Pushed.", "artifacts": [], "recommendation": "proceed"'
printf "$said"', "notes": ["branch: %s", "commit: %s"]}' "$(git branch --show-current)" "$(git rev-parse HEAD)"
"""
    stage.run("--exec", stage.script("a.sh", script), "--repo", str(stage.directory))
    brief = brief_asking(type="pr", schema_ref="code_commit", output_ref_required=True)
    brief["payload"]["env"]["repo_url"] = str(origin)
    task = stage.ends(stage.task(brief=brief), "completed")
    branch, commit = (line.partition(": ")[2] for line in task.notes.splitlines())
    (clone,) = (stage.directory / "work-quinn" / "repositories").glob("*.git")
    assert git(clone, "rev-parse", branch) == commit
    assert not list((stage.directory / "work-quinn" / "places").iterdir())
    brief["payload"]["env"]["repo_url"] = "https://elsewhere.example/x.git"
    refused = stage.ends(stage.task(brief=brief), "blocked")
    assert refused.blocker.blocker_type == "tool_failure"


def test_a_runner_key_is_enough_where_the_agent_is_registered(stage: Scene) -> None:
    stage.rk.queues.create(stage.queue)
    card = json.loads(stage.card("quinn").read_text())
    stage.rk.agents.register(card=card)
    key = stage.rk.keys.create(stage.server.workspace_id, scopes=["runner"]).api_key
    said = output(artifacts=[{"path": "a.txt", "operation": "create", "content": "x"}])
    (stage.directory / "said.json").write_text(said)
    stage.run("--exec", f"cat {stage.directory}/said.json", REDKEY_API_KEY=key)
    task = stage.ends(stage.task(outputs=["a"]), "completed")
    assert task.artifacts[0].name == "a"


def test_an_agent_without_a_card_runs_by_its_persona(stage: Scene) -> None:
    persona = stage.directory / "persona.md"
    persona.write_text("You are Old Quinn.\n\n# How\n\nTersely.\n")
    (stage.directory / "said.json").write_text(output())
    command = f'cp "$REDKEY_PROMPT_FILE" {stage.directory}/prompt; cat {stage.directory}/said.json'
    stage.start(
        [
            *("--persona", str(persona), "--name", f"old{stage.suffix}", "--queue", stage.queue, "--memory", "off"),
            *("--work", str(stage.directory / "w"), "--exec", command),
        ]
    )
    stage.ends(stage.task(), "completed")
    prompt = (stage.directory / "prompt").read_text()
    assert prompt.startswith("You are Old Quinn.\n\n### How\n\nTersely.\n\n## Skills")


def test_a_changed_card_is_told_to_the_server_when_its_runner_starts(stage: Scene) -> None:
    (stage.directory / "said.json").write_text(output())
    first = stage.run("--exec", f"cat {stage.directory}/said.json")
    stage.ends(stage.task(), "completed")
    assert first.stop() == 0
    path = stage.card("quinn", scope="I do something else now.")
    second = stage.start(
        ["--card", str(path), "--queue", stage.queue, "--work", str(stage.directory / "w"), "--exec", "true"]
    )
    (agent,) = stage.rk.agents.list(slug=f"quinn{stage.suffix}")
    until(lambda: (stage.rk.agents.get(agent.agent_id).card or {}).get("scope") == "I do something else now.")
    assert second.stop() == 0


def test_the_table_of_a_fleet_draws_what_strangers_wrote_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    from redkey.cli.run import _Table
    from redkey.runner.fleet import Fleet

    table = _Table()
    fleet = Fleet(["quinn"], lambda name: [name])
    fleet.agents["quinn"].title = "[red]evil\x1b[2J"
    with table:
        table(fleet)
    drawn = capsys.readouterr().out
    assert "[red]evil" in drawn
    assert "\x1b[2J" not in drawn


def test_what_the_documentation_shows_is_there(tmp_path: Path) -> None:
    text = (files.root() / "docs" / "runner.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "fleet.toml").write_text(block)
    (tmp_path / "quinn.sh").write_text("#!/bin/sh\n")
    (tmp_path / "quinn.sh").chmod(0o755)
    assert set(read_fleet(tmp_path / "fleet.toml")) == {"quinn", "ada"}
    commands = (["run"], ["prompt", "show"], ["card", "show"], ["task", "create"], ["task", "logs"])
    commands += (["workspace", "policy"], ["usage", "show"])
    helped = "".join(_call(None, *command, "--help").stdout for command in commands)
    foreign = {"--no-deps"}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)) - foreign
    assert named <= set(re.findall(r"--[a-z][a-z0-9-]+", helped)), named
