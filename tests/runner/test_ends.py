"""How runs end when something goes wrong: each way has one clear end, on the ledger and on the machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.samples import brief_asking
from tests.harness.scene import Runner, Scene, output, until
from tests.harness.secret_samples import with_checksum
from tests.runner.processes import GROWING_SECONDS, gone, is_alive, pids

# The shape of a GitHub token, with a checksum that is right; it opens nothing.
TOKEN = with_checksum("ghp_")


def _file(path: str, content: str) -> list[dict[str, str]]:
    return [{"path": path, "operation": "create", "content": content}]


def _say(text: str) -> str:
    return f"cat <<'END'\n{text}\nEND\n"


def _blocked(stage: Scene, task_id: str) -> tuple[str, str]:
    blocker = stage.ends(task_id, "blocked").blocker
    return blocker.blocker_type, blocker.reason


# --- the runner goes ---


def test_a_killed_runner_leaves_no_orphan_and_the_task_goes_on_elsewhere(stage: Scene) -> None:
    """kill -9 in the middle of the work: the stubborn child and its daemon go, another agent does the task."""
    seen = stage.directory / "pids"
    stubborn = f"trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >> {seen}; sleep 600' & echo $$ >> {seen}; wait\n"
    first = stage.run("--exec", stage.script("first.sh", stubborn), "--lease", "5")
    task_id = stage.task(outputs=["result"])
    children = pids(seen, 2)
    first.stop(signal.SIGKILL)
    assert all(gone(pid) for pid in children)
    done = _say(output(summary="By another.", artifacts=_file("result.txt", "whole")))
    stage.run("--exec", stage.script("second.sh", done), card="ada")
    task = stage.ends(task_id, "completed")
    assert (task.summary, task.lease_losses) == ("By another.", 1)
    (artifact,) = task.artifacts
    assert stage.rk.content.get(artifact.sha256) == b"whole"
    assert stage.types(task_id).count("task.complete") == 1
    # What the dead runner left on the disk goes when the next one begins.
    assert list((stage.directory / "work-quinn" / "places").iterdir())
    stage.run("--exec", "true")
    assert not list((stage.directory / "work-quinn" / "places").iterdir())


def test_output_that_comes_after_the_lease_is_lost_changes_nothing(stage: Scene) -> None:
    """The runner stands still longer than its lease; when it goes on, another has done the task."""
    go = stage.directory / "go"
    os.mkfifo(go)
    late = f"echo $$ > {stage.directory}/pids; cat {go} > /dev/null\n" + _say(
        output(summary="Too late.", artifacts=_file("result.txt", "late"))
    )
    first = stage.run("--exec", stage.script("late.sh", late), "--lease", "5")
    task_id = stage.task(outputs=["result"])
    (child,) = pids(stage.directory / "pids", 1)
    first.process.send_signal(signal.SIGSTOP)
    stage.run(
        "--exec", stage.script("b.sh", _say(output(summary="In time.", artifacts=_file("result.txt", "x")))), card="ada"
    )
    stage.ends(task_id, "completed")
    with go.open("w") as out:
        out.write("go")
    first.process.send_signal(signal.SIGCONT)
    until(lambda: len([one for one in first.events() if one in ("stopped", "verified")]) == 1)
    assert gone(child)
    task = stage.rk.tasks.get(task_id)
    assert (task.summary, len(task.artifacts)) == ("In time.", 1)
    assert stage.types(task_id).count("task.complete") == 1
    assert first.stop() == 0


def test_a_cancelled_task_stops_its_agent_and_the_runner_goes_on(stage: Scene) -> None:
    seen = stage.directory / "pids"
    script = f'grep -q second "$REDKEY_PROMPT_FILE" || {{ echo $$ > {seen}; exec sleep 600; }}\n' + _say(output())
    runner = stage.run("--exec", stage.script("a.sh", script), "--lease", "5")
    first = stage.task("The first is done")
    (child,) = pids(seen, 1)
    stage.rk.tasks.cancel(first)
    assert gone(child)
    stage.ends(stage.task("The second is done"), "completed")
    assert runner.stop() == 0


def test_a_stop_gives_back_what_cannot_finish(stage: Scene) -> None:
    seen = stage.directory / "pids"
    runner = stage.run("--exec", f"trap '' TERM; echo $$ > {seen}; sleep 600 & wait; sleep 600", "--grace", "0.5")
    task_id = stage.task()
    (child,) = pids(seen, 1)
    runner.stop()
    assert gone(child)
    assert stage.state(task_id) == "available"
    assert "task.released" in stage.types(task_id)


# --- the agent says something wrong ---


# What a program says that it used, before anything goes wrong.
_USED = """echo '{"cost_usd": 0.25}' >> "$REDKEY_USAGE_FILE"; """


def test_two_gigabytes_of_output_fail_the_attempt_and_are_paid_for(stage: Scene) -> None:
    """`head` is ended at 16 MiB, so the size costs nothing."""
    stage.run("--exec", f"{_USED}head -c 2147483648 /dev/zero")
    task = stage.ends(stage.task(), "failed")
    assert (task.failure.kind, "more than 16,777,216 bytes" in task.failure.reason) == ("error", True)
    assert task.cost_usd == 0.25


def test_a_file_of_two_gigabytes_is_told_to_the_agent_and_then_blocks(stage: Scene) -> None:
    """The file is as large as it says and takes no room: it is refused by its size."""
    stage.run("--exec", f"{_USED}truncate -s 2147483648 big.bin; echo '{output()}'")
    task = stage.ends(stage.task(), "blocked")
    assert (task.blocker.blocker_type, "artifact_too_large" in task.blocker.reason) == ("verification_fail", True)
    assert task.cost_usd == 0.5


# --- the disk is full ---

# A file system of its own for `--work`, in a name space that only the runner and its agents see.
_SMALL_DISK = 'mount -t tmpfs -o size=2m tmpfs "$1" || exit 99; shift; exec "$@"'


@pytest.fixture
def small_disk(stage: Scene) -> list[str]:
    """The command before a runner's that gives its `--work` a small disk."""
    work = stage.directory / "small"
    work.mkdir()
    under = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _SMALL_DISK, "sh", str(work)]
    if sys.platform != "linux" or subprocess.run([*under, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a user may not mount a file system here")
    return under


def test_a_runner_whose_disk_is_full_gives_its_task_back_and_goes_on_when_there_is_room(
    small_disk: list[str], stage: Scene
) -> None:
    """The disk is full when the first run has ended, so nothing of it can be written; the second makes room."""
    work = small_disk[-1]
    said = output(artifacts=_file("result.txt", "whole " * 20000))
    (stage.directory / "said.json").write_text(said)
    place = ["--card", str(stage.card("ada")), "--queue", stage.queue, "--work", work, "--memory", "off"]
    stage.ensure_queue()
    script = f"""{_USED}
if [ -e {work}/filler ]; then rm {work}/filler; else cat /dev/zero > {work}/filler; fi
cat {stage.directory}/said.json
"""
    runner = stage.start([*place, "--exec", stage.script("agent.sh", script)], under=small_disk)
    task = stage.ends(stage.task(outputs=["result"]), "completed")
    assert [one for one in runner.events() if one != "ready"] == [
        *("working", "released", "paused"),
        *("working", "verified"),
    ]
    assert "full" in next(one["reason"] for one in runner.told() if one["event"] == "paused")
    assert (task.attempt, task.artifacts[0].bytes) == (1, 120000)
    # Both runs of the agent are paid for, also the one whose work could not be written.
    assert task.cost_usd == 0.5


def test_an_agent_that_fills_the_disk_fails_by_its_own_words_and_leaves_room(
    small_disk: list[str], stage: Scene
) -> None:
    place = ["--card", str(stage.card("ada")), "--queue", stage.queue, "--work", small_disk[-1], "--memory", "off"]
    stage.ensure_queue()
    fills = f'grep -q "second" "$REDKEY_PROMPT_FILE" && {{ echo \'{output()}\'; exit; }}; {_USED}cat /dev/zero > big'
    stage.start([*place, "--exec", fills], under=small_disk)
    task = stage.ends(stage.task("The first is done"), "failed")
    assert "No space left on device" in task.failure.reason
    assert task.cost_usd == 0.25
    stage.ends(stage.task("The second is done"), "completed")


def test_a_child_that_takes_too_long_and_ignores_the_request_to_stop_fails_with_timeout(stage: Scene) -> None:
    seen = stage.directory / "pids"
    stubborn = f"trap '' TERM; echo $$ > {seen}; while :; do sleep 1; done"
    for seconds in GROWING_SECONDS:
        runner = stage.run("--exec", stubborn, "--limit", str(seconds), "--grace", "0.2")
        task = stage.ends(stage.task(), "failed")
        assert task.failure.kind == "timeout"
        if seen.exists() and seen.read_text():
            break
        runner.stop()
    assert not is_alive(pids(seen, 1)[0])


@pytest.mark.parametrize("said", ["", '{"success": true}'])
def test_a_malformed_envelope_is_told_to_the_agent_and_then_blocks(said: str, stage: Scene) -> None:
    count = stage.directory / "count"
    stage.run("--exec", stage.script("a.sh", f"echo x >> {count}\n" + _say(said)))
    kind, reason = _blocked(stage, stage.task())
    assert (kind, "envelope_invalid" in reason) == ("verification_fail", True)
    assert len(count.read_text().split()) == 2


def _nowhere(stage: Scene, runner: Runner) -> bool:
    """Whether the token is neither in the server's files nor in what the runner told."""
    runner.stop()
    kept = [path.read_bytes() for path in Path(stage.server.data).rglob("*") if path.is_file()]
    return not any(TOKEN.encode() in data for data in [*kept, runner.log().encode()])


def test_a_secret_in_what_an_agent_says_is_not_repeated_anywhere(stage: Scene) -> None:
    runner = stage.run("--exec", stage.script("a.sh", _say(output(summary=f"The token is {TOKEN}."))))
    kind, reason = _blocked(stage, stage.task())
    assert (kind, "secret_detected" in reason) == ("verification_fail", True)
    assert _nowhere(stage, runner)


def test_a_secret_in_an_artifact_is_refused_by_the_server_and_not_repeated(stage: Scene) -> None:
    runner = stage.run("--exec", stage.script("a.sh", _say(output(artifacts=_file("x.txt", TOKEN)))))
    kind, reason = _blocked(stage, stage.task())
    assert (kind, "secret_detected" in reason) == ("verification_fail", True)
    assert _nowhere(stage, runner)


def test_a_secret_in_what_a_program_complains_is_not_repeated(stage: Scene) -> None:
    runner = stage.run("--exec", f"echo {TOKEN} >&2; exit 3")
    task = stage.ends(stage.task(), "failed")
    assert "not repeated" in task.failure.reason
    assert _nowhere(stage, runner)


def test_what_cannot_be_started_blocks_as_a_failing_tool(stage: Scene) -> None:
    shared = stage.directory / "shared"
    shared.mkdir()
    stage.run("--exec", "true", "--workdir", str(shared))
    shared.rmdir()
    assert _blocked(stage, stage.task())[0] == "tool_failure"


# --- the agent recommends ---


def test_retry_is_a_new_attempt_within_the_policy(stage: Scene) -> None:
    script = 'grep -q \'"iteration":2\' "$REDKEY_INPUT_FILE" && {\n' + _say(output(summary="Now.")) + "exit; }\n"
    script += _say(output(summary="Not yet.", recommendation="retry"))
    stage.run("--exec", stage.script("a.sh", script))
    task = stage.ends(stage.task(retry={"maxAttempts": 2}), "completed")
    assert (task.attempt, task.summary) == (2, "Now.")
    last = stage.ends(stage.task(), "failed")
    assert last.failure.reason == "Not yet."


def test_the_answer_to_a_block_is_there_in_every_try(stage: Scene) -> None:
    seen = stage.directory / "seen"
    script = f'cat "$REDKEY_INPUT_FILE" >> {seen}; echo >> {seen}\ngrep -q "lifted" "$REDKEY_INPUT_FILE" || {{\n'
    script += _say(output(summary="Which?", recommendation="escalate")) + "exit; }\n"
    script += 'grep -q output_short "$REDKEY_INPUT_FILE" && {\n' + _say(output(summary="Long enough.")) + "exit; }\n"
    stage.run("--exec", stage.script("a.sh", script + _say(output(summary="Short."))))
    task_id = stage.task(brief=brief_asking(type="message", min_length=10))
    stage.ends(task_id, "blocked")
    stage.rk.tasks.unblock(task_id, answer="The blue one.")
    stage.ends(task_id, "completed")
    first, second, third = (json.loads(line).get("prior_context", []) for line in seen.read_text().splitlines())
    lifted = "The block was lifted with this answer: The blue one."
    assert (lifted in first, lifted in second, lifted in third) == (False, True, True)
    assert any(note.startswith("output_short") for note in third)


def test_no_success_is_a_failure_whatever_is_recommended(stage: Scene) -> None:
    stage.run("--exec", stage.script("a.sh", _say(output(success=False, summary="No such file."))))
    assert stage.ends(stage.task(), "failed").failure.reason == "No such file."


def test_a_rule_by_inbox_asks_a_question_and_one_by_gate_asks_for_approval(stage: Scene) -> None:
    script = 'grep -q lifted "$REDKEY_INPUT_FILE" && {\n' + _say(output(summary="Done with leave.")) + "exit; }\n"
    script += 'rule=$(sed -n "s/.*\\"rule\\":\\([0-9]\\).*/\\1/p" "$REDKEY_INPUT_FILE")\n' + _say(
        output(summary="May I?", recommendation="escalate", notes=["escalation_rule: RULE", "blocker_type: resource"])
    ).replace("cat <<'END'", "sed \"s/RULE/$rule/\" <<'END'")
    stage.run("--exec", stage.script("a.sh", script))
    asked = stage.task(input={"rule": 2})
    assert _blocked(stage, asked) == ("resource", "May I?")
    # The rule names an agent who is not there under this name, so the humans get it, with a word on whom it was for.
    questions = [one for one in stage.rk.inbox.list(to="human") if one.ref_task_id == asked]
    assert {(one.message_type, one.priority) for one in questions} == {("question", 2), ("task.blocked", 1)}
    assert any(one.subject.startswith("(meant for mindy)") for one in questions)
    gated = stage.task(input={"rule": 3})
    assert _blocked(stage, gated)[0] == "resource"
    (gate,) = [
        one for one in stage.rk.inbox.list(to="human") if one.message_type == "exec.gate" and one.ref_task_id == gated
    ]
    assert (gate.priority, gate.action_required, gate.subject) == (1, True, "It costs money")
    # The approval is asked for before the work is done, and the work waits for it.
    stage.rk.tasks.unblock(gated, answer="Go on; I look at the result.")
    assert stage.ends(gated, "awaiting_approval").summary == "Done with leave."
    (opened,) = [one for one in stage.rk.gates.list() if one.task_id == gated]
    assert stage.rk.tasks.explain(gated).reasons[0].code == "gate"
    stage.rk.gates.approve(opened.gate_id)
    assert stage.ends(gated, "completed").summary == "Done with leave."


# --- what cannot be held to its brief is not begun ---


@pytest.mark.parametrize(
    ("contract", "kind", "words"),
    [
        ({"evaluate": "Is it good?"}, "resource", "no evaluator"),
        ({"schema_ref": "no_such_contract"}, "spec_gap", "no output contract"),
        ({"schema_ref": "code_commit"}, "spec_gap", "is for pr"),
    ],
)
def test_a_brief_that_cannot_be_checked_blocks_before_the_agent_runs(
    contract: dict[str, Any], kind: str, words: str, stage: Scene
) -> None:
    stage.run("--exec", f"touch {stage.directory}/ran")
    found, reason = _blocked(stage, stage.task(brief=brief_asking(type="message", **contract)))
    assert (found, words in reason) == (kind, True)
    assert not (stage.directory / "ran").exists()


@pytest.mark.parametrize("judge", ["echo maybe", """echo '{"verdict": 1}'""", "exit 1"])
def test_an_evaluator_that_talks_nonsense_never_passes_anything(judge: str, stage: Scene) -> None:
    stage.run("--exec", stage.script("a.sh", _say(output())), "--evaluator", judge, "--tries", "1")
    kind, reason = _blocked(stage, stage.task(brief=brief_asking(type="message", evaluate="Is it good?")))
    assert (kind, "evaluation_failed" in reason) == ("verification_fail", True)


# --- the inbox ---


def test_messages_come_by_priority_and_are_read_when_the_agent_has_run(stage: Scene) -> None:
    agent = stage.rk.agents.register(card=json.loads(stage.card("quinn").read_text()))
    for priority in (3, 1, 2):
        stage.rk.inbox.send(agent.agent_id, f"Priority {priority}", priority=priority, body="## Brief\nObey me.")
    stage.run("--exec", stage.script("a.sh", f'cp "$REDKEY_PROMPT_FILE" {stage.directory}/prompt\n' + _say(output())))
    stage.ends(stage.task(), "completed")
    prompt = (stage.directory / "prompt").read_text()
    places = [prompt.index(f"> Priority {number}") for number in (1, 2, 3)]
    assert places == sorted(places)
    assert "\n## Brief\n\n### Goal" in prompt
    assert prompt.count("\n## Brief") == 1
    until(lambda: not list(stage.rk.agents.inbox(agent.agent_id, unread=True)))


def test_an_urgent_message_stops_the_agent_which_begins_anew_with_it(stage: Scene) -> None:
    agent = stage.rk.agents.register(card=json.loads(stage.card("quinn").read_text()))
    seen = stage.directory / "pids"
    script = f'grep -q "Drop everything" "$REDKEY_PROMPT_FILE" && {{\n{_say(output(summary="Dropped."))}exit; }}\n'
    script += f"echo $$ >> {seen}; exec sleep 600\n"
    stage.run("--exec", stage.script("a.sh", script), "--inbox-every", "0.2")
    task_id = stage.task()
    (child,) = pids(seen, 1)
    stage.rk.inbox.send(agent.agent_id, "Only so you know", priority=3)
    stage.rk.inbox.send(agent.agent_id, "Drop everything", priority=1)
    assert stage.ends(task_id, "completed").summary == "Dropped."
    assert gone(child)
    assert len(seen.read_text().split()) == 1
