"""The whole brief arrives: description, messages, the answer to a block, and what tasks before made."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from redkey.cli import main
from redkey.client import Invalid
from tests.harness.samples import brief_asking
from tests.harness.scene import Scene, output


def test_description_messages_and_answer_reach_the_prompt(stage: Scene) -> None:
    seen = stage.directory / "seen"
    script = f"""
cat "$REDKEY_PROMPT_FILE" > {seen}
grep -q 'The colour is blue' "$REDKEY_PROMPT_FILE" && echo '{output(summary="Painted.")}' && exit
echo '{output(success=False, summary="Which colour?", recommendation="escalate", notes=["blocker_type: spec_gap"])}'
"""
    description = "Paint the door.\n\n    keep   this\n" + "and words " * 300 + "to the last one"
    task_id = stage.task("The door is painted", description=description)
    stage.rk.tasks.add_message(task_id, "Mind the cat")
    stage.run("--exec", stage.script("agent.sh", script))
    stage.ends(task_id, "blocked")
    stage.rk.tasks.unblock(task_id, "The colour is blue")
    assert stage.ends(task_id, "completed").summary == "Painted."
    text = seen.read_text()
    assert ">     keep   this\n" in text
    assert "to the last one" in text
    assert "> Mind the cat" in text


def test_what_a_task_depends_on_is_there_outside_of_workflows_too(stage: Scene) -> None:
    script = f"""
path=$(sed -n 's/.*"facts.md":"\\([^"]*\\)".*/\\1/p' "$REDKEY_INPUT_FILE")
if [ -n "$path" ]; then cp "$path" copy.md; else echo 'A fact.' > facts.md; fi
echo '{output()}'
"""
    first = stage.task("First")
    second = stage.task("Second", depends_on=[first])
    stage.run("--exec", stage.script("agent.sh", script))
    task = stage.ends(second, "completed")
    assert stage.rk.content.get({one.name: one.sha256 for one in task.artifacts}["copy.md"]) == b"A fact.\n"


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_task_is_created_with_a_brief_and_its_prompt_is_shown(ending: str, stage: Scene) -> None:
    path = stage.directory / f"brief.{ending}"
    # Every JSON document is YAML.
    path.write_text(json.dumps(brief_asking(type="message"), indent=2))
    known = ["--url", stage.server.url]
    env = {"REDKEY_API_KEY": stage.server.key}
    arguments = ["task", "create", "--title", "T", "--queue", stage.queue, "--brief", str(path), "--json", *known]
    made = CliRunner().invoke(main, arguments, env=env)
    assert made.exit_code == 0, made.output
    task_id = json.loads(made.stdout)["taskId"]
    persona = stage.directory / "persona.md"
    persona.write_text("You are Ann.")
    shown = CliRunner().invoke(
        main, ["prompt", "show", "--persona", str(persona), "--name", "ann", "--task", task_id, *known], env=env
    )
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("You are Ann.")
    assert "### Goal\n\nIt is done." in shown.stdout
    assert f"- task: {task_id}" in shown.stdout
    # The server fills in the ids that the author of a brief could not know.
    brief = json.loads(path.read_text())
    del brief["payload"]["env"]["task_id"]
    made_in_project = stage.rk.tasks.create(stage.queue, title="T", brief=brief, context_id="project:m01r")
    env_shown = stage.rk.tasks.get(made_in_project.task_id).brief["payload"]["env"]
    assert (env_shown["task_id"], env_shown["project_id"]) == (made_in_project.task_id, "m01r")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"goal": "The shop is open. Then it is closed."},
        {"goal": "The shop is open. Build another."},
        {"goal": "Build the shop."},
        {"goal": "Mr. Fox is paid 1.50 dollars, e.g. in coins."},
        {"goal": "店が開いている。閉める。"},
        {"goal": "   "},
        {"goal": ""},
        {"context": "word " * 201},
        {"context": "word " * 200},
        {"acceptance_criteria": []},
        {"acceptance_criteria": ["It is open. It is clean."]},
        {"env": {"client_id": "test"}},
        {"env": {}},
        {"output_contract": {"type": "poem", "output_ref_required": False, "min_length": 0}},
    ],
    ids=str,
)
def test_wire_validate_judges_a_brief_as_the_server_does(change: dict[str, object], stage: Scene) -> None:
    """The same codes, in error and in advice: what passes here is not refused there, and the other way round."""
    brief = brief_asking(type="message")
    brief["payload"] |= change
    checked = CliRunner().invoke(main, ["wire", "validate", "-", "--json"], input=json.dumps(brief))
    found = json.loads(checked.stdout)["findings"]
    stage.ensure_queue()
    try:
        made = stage.rk.tasks.create(stage.queue, title="T", brief=brief)
        judged = [(one.code, one.pointer) for one in made.warnings]
        is_valid = True
    except Invalid as refused:
        judged = [(one.code, one.pointer) for one in refused.errors]
        is_valid = False
    assert (checked.exit_code == 0) == is_valid
    severe = [one for one in found if is_valid or one.get("severity", "error") == "error"]
    assert [(one["code"], f"/brief{one['pointer']}") for one in severe] == judged
