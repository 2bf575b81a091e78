"""The daily commands against a real server: what people type, what they read, what scripts branch on."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from redkey.cli import main
from redkey.client import RedKey
from tests.harness.server import Server, serving

PLAN = Path(__file__).resolve().parents[2] / "examples" / "podcast" / "plan.json"
PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("daily")) as running:
        yield running


@pytest.fixture
def rk(server: Server) -> Iterator[RedKey]:
    with RedKey(server.url, server.key) as client:
        yield client


def _call(server: Server, *arguments: str, told: str | None = None, key: str | None = None) -> Result:
    given = {
        "REDKEY_URL": server.url,
        "REDKEY_API_KEY": key or server.key,
        "REDKEY_DATA": None,
        "REDKEY_AGENT_ID": None,
    }
    return CliRunner().invoke(main, arguments, env=given, input=told)


def _does(server: Server, *arguments: str, told: str | None = None) -> str:
    result = _call(server, *arguments, told=told)
    assert result.exit_code == 0, result.output
    return result.stdout


def _told(server: Server, *arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in _does(server, *arguments, "--json").splitlines()]


def _task(server: Server, queue: str, *arguments: str) -> str:
    """A fresh task; its id is all that is printed."""
    task_id = _does(server, "task", "create", "--queue", queue, *arguments).strip()
    assert re.fullmatch(r"task_[0-9A-Z]{26}", task_id)
    return task_id


def _claim(server: Server, agent: str, queue: str) -> str:
    found = _call(server, "claim", "next", "--agent", agent, "--queue", queue, "--json")
    assert found.exit_code == 0, found.output
    return str(json.loads(found.stdout)["claimId"])


def test_a_first_task_needs_nothing_but_a_server(tmp_path: Path) -> None:
    with serving(tmp_path) as fresh:
        given = {"REDKEY_DATA": str(fresh.data), "REDKEY_URL": None, "REDKEY_API_KEY": None}
        made = CliRunner().invoke(main, ["task", "create", "--role", "researcher", "--title", "First"], env=given)
        assert made.exit_code == 0, made.output
        assert made.stderr.splitlines() == ["created the queue default", "created the role researcher"]
        task_id = made.stdout.strip()
        CliRunner().invoke(main, ["agent", "register", "atlas", "--role", "researcher"], env=given)
        claim = CliRunner().invoke(main, ["claim", "next", "--agent", "atlas", "--json"], env=given)
        CliRunner().invoke(
            main, ["claim", "complete", json.loads(claim.stdout)["claimId"], "--summary", "Done."], env=given
        )
        watched = CliRunner().invoke(main, ["task", "watch", task_id], env=given)
        assert watched.exit_code == 0, watched.output
        assert "task.complete" in watched.stdout
        assert watched.stdout.endswith(f"{task_id} is completed: Done.\n")


def test_watching_goes_on_until_the_task_has_ended_and_says_how(server: Server, rk: RedKey) -> None:
    task_id = _task(server, "watched", "--title", "Watch me")
    _does(server, "agent", "register", "watched-agent", "--no-key")
    environment = {**os.environ, "REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    command = [sys.executable, "-m", "redkey", "task", "watch", task_id]
    watcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    # It has begun to look before anything happens.
    assert "task.created" in watcher.stdout.readline()
    claim = rk.queues.claim_next("watched", next(iter(rk.agents.list(slug="watched-agent"))).agent_id)
    rk.claims.fail(claim.claim_id, "No luck")  # type: ignore[union-attr]
    rest = watcher.stdout.read()
    watcher.stdout.close()
    assert watcher.wait(PATIENCE_SECONDS) == 1
    assert rest.endswith(f"{task_id} is failed\n")


def test_a_task_that_waits_for_approval_is_watched_until_it_is_approved(server: Server, rk: RedKey) -> None:
    task_id = _task(server, "gated", "--title", "Wait for me", "--gate")
    _does(server, "agent", "register", "gated-agent", "--no-key")
    made = rk.keys.create(
        server.workspace_id, scopes=["agent"], agent_id=next(iter(rk.agents.list(slug="gated-agent"))).agent_id
    )
    with RedKey(server.url, made.api_key) as agent:
        claim = agent.queues.claim_next("gated", str(made.agent_id))
        agent.claims.complete(claim.claim_id, summary="Done.")  # type: ignore[union-attr]
    environment = {**os.environ, "REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    command = [sys.executable, "-m", "redkey", "task", "watch", task_id]
    watcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    while "task.complete" not in watcher.stdout.readline():
        pass
    rk.gates.approve(rk.tasks.get(task_id).gate_id)
    rest = watcher.stdout.read()
    watcher.stdout.close()
    assert (watcher.wait(PATIENCE_SECONDS), rest.splitlines()[-1]) == (0, f"{task_id} is completed: Done.")


def test_on_a_terminal_a_task_is_watched_live_to_its_end(server: Server, rk: RedKey) -> None:
    task_id = _task(server, "live", "--title", "Watch me live")
    _does(server, "agent", "register", "live-agent", "--no-key")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "REDKEY_URL": server.url, "REDKEY_API_KEY": server.key, "TERM": "xterm"}
    command = [sys.executable, "-m", "redkey", "task", "watch", task_id]
    watcher = subprocess.Popen(command, env=environment, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    seen = b""
    while b"available" not in seen:
        seen += os.read(ours, 65536)
    claim = rk.queues.claim_next("live", next(iter(rk.agents.list(slug="live-agent"))).agent_id)
    rk.claims.complete(claim.claim_id, summary="Seen.")  # type: ignore[union-attr]
    while True:
        try:
            seen += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    assert watcher.wait(PATIENCE_SECONDS) == 0
    assert b"\x1b[" in seen
    assert b"completed" in seen


def test_claims_by_hand_from_the_first_to_the_receipt(server: Server, tmp_path: Path) -> None:
    task_id = _task(server, "hand", "--role", "cook", "--title", "Cook", "--output", "dish", "--input", '{"for": 2}')
    _does(server, "agent", "register", "cook-1", "--role", "cook", "--no-key")
    shown = _call(server, "claim", "next", "--agent", "cook-1", "--queue", "hand")
    claim_id = re.search(r"clm_\w+", shown.stdout)[0]  # type: ignore[index]
    assert '{"for":2}' in shown.stdout
    assert _does(server, "claim", "start", claim_id) == f"{task_id} started\n"
    assert _does(server, "claim", "heartbeat", claim_id).startswith("held, lease ends in ")
    missing = _call(server, "claim", "complete", claim_id)
    assert (missing.exit_code, "missing_artifact" in missing.stderr) == (1, True)
    dish = tmp_path / "dish.txt"
    dish.write_text("Soup")
    _does(server, "claim", "complete", claim_id, "--summary", "Soup for two", "--artifact", f"dish={dish}")
    facts = _does(server, "task", "show", task_id)
    assert re.search(r"^summary +Soup for two$", facts, re.MULTILINE)
    assert re.search(r"^artifacts +dish \(4 bytes\)$", facts, re.MULTILINE)
    event = _told(server, "events", "tail", "--type", "task.complete", "--task", task_id)[0]["eventId"]
    receipt, key = tmp_path / "receipt.json", tmp_path / "log.pub"
    _does(server, "receipt", "get", str(event), "--out", str(receipt))
    key.write_text(_does(server, "receipt", "keys"))
    verified = CliRunner().invoke(main, ["receipt", "verify", str(receipt), "--key", str(key)])
    assert verified.exit_code == 0, verified.output


def test_a_lost_race_and_an_empty_queue_are_exit_code_1(server: Server) -> None:
    task_id = _task(server, "race", "--title", "One winner")
    for name in ("first", "second"):
        _does(server, "agent", "register", name, "--no-key")
    assert _call(server, "claim", "take", task_id, "--agent", "first").exit_code == 0
    lost = _call(server, "claim", "take", task_id, "--agent", "second")
    assert (lost.exit_code, lost.stdout) == (1, "")
    assert re.fullmatch(
        r"redkey: missed: first was first; its lease ends in \d+m\n"
        r"next: redkey claim next --queue race --agent agt_\w+\n",
        lost.stderr,
    )
    none = _call(server, "claim", "next", "--agent", "second", "--queue", "race", "--json")
    assert (none.exit_code, json.loads(none.stdout)["status"]) == (1, "no_tasks")
    assert _told(server, "agent", "history", "second")[0]["status"] == "missed"


def test_why_a_task_does_not_move_comes_with_the_command_that_moves_it(server: Server) -> None:
    task_id = _task(server, "stuck", "--role", "diver", "--title", "Dive")
    assert _does(server, "task", "explain", task_id).splitlines() == [
        f"{task_id} is available",
        "  No agent was granted role_diver. [missing_role]",
        "    hint: or grant the role to an agent you have",
        "    next: redkey agent register diver-1 --role diver",
    ]


def test_giving_back_blocking_unblocking_cancelling_and_retrying(server: Server) -> None:
    task_id = _task(server, "acts", "--title", "Acts")
    _does(server, "agent", "register", "actor", "--no-key")
    assert _does(server, "claim", "release", _claim(server, "actor", "acts")) == f"{task_id} released\n"
    _does(server, "claim", "block", _claim(server, "actor", "acts"), "--type", "spec_gap", "--reason", "Which colour?")
    assert "Which colour?" in _does(server, "task", "show", task_id)
    assert "task.blocked" in _does(server, "inbox", "list")
    assert _does(server, "task", "unblock", task_id, "--answer", "Red.") == f"{task_id} is available\n"
    assert _does(server, "task", "cancel", task_id) == f"{task_id} is cancelled\n"
    again = _call(server, "task", "cancel", task_id)
    assert (again.exit_code, "[already_terminal]" in again.stderr) == (1, True)
    assert _does(server, "task", "retry", task_id) == f"{task_id} is available\n"
    _does(server, "claim", "fail", _claim(server, "actor", "acts"), "--reason", "Out of red")
    assert "error: Out of red" in _does(server, "task", "show", task_id)


def test_a_plan_runs_is_paused_watched_and_cancelled(server: Server) -> None:
    run = _does(server, "workflow", "start", str(PLAN), "--queue", "plans", "--input", '{"guest": "Ada"}').strip()
    shown = _does(server, "workflow", "show", run)
    assert re.search(r"^guest_intake +available +1/2 +producer", shown, re.MULTILINE)
    assert run in _does(server, "workflow", "list")
    assert _does(server, "workflow", "graph", run).startswith("flowchart")
    assert _does(server, "workflow", "pause", run) == f"{run} is paused\n"
    assert _does(server, "workflow", "resume", run) == f"{run} is running\n"
    assert _does(server, "workflow", "cancel", run) == f"{run} is cancelled\n"
    watched = _call(server, "workflow", "watch", run)
    assert watched.exit_code == 1
    assert watched.stdout.endswith(f"{run} is cancelled\n")
    assert run in _does(server, "workflow", "list", "--all")
    for state, there in (("cancelled", True), ("ended", True), ("running", False), ("live", False)):
        assert (run in _does(server, "workflow", "list", "--state", state)) is there, state
    assert _call(server, "workflow", "list", "--state", "ended", "--all").exit_code == 2


def test_projects_are_put_on_hold_and_listed_by_state(server: Server) -> None:
    _does(server, "project", "create", "Vault")
    held = _told(server, "project", "update", "vault", "--state", "on_hold")[0]
    assert (held["state"], held["status"]) == ("on_hold", "on_hold")
    table = _does(server, "project", "list", "--state", "on_hold")
    assert re.search(r"^vault +on_hold ", table, re.MULTILINE)
    assert "STATUS" not in table
    assert _told(server, "project", "list", "--state", "active") == []
    shown = _does(server, "project", "show", "vault")
    assert re.search(r"^state +on_hold$", shown, re.MULTILINE)
    assert "status" not in shown


def test_an_invalid_plan_is_refused_with_everything_that_is_wrong(server: Server, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": "1.0", "name": "x", "roles": {}, "tasks": [], "policies": {}}))
    refused = _call(server, "workflow", "start", str(plan), "--queue", "plans")
    assert refused.exit_code == 1
    assert len(re.findall(r"^  /plan/?\S*: .* \[\w+\]$", refused.stderr, re.MULTILINE)) >= 2


def test_gates_are_shown_rejected_with_a_note_and_approved(server: Server, rk: RedKey) -> None:
    task_id = _task(server, "gates", "--title", "Announce", "--gate", "--max-attempts", "2")
    made = json.loads(_call(server, "agent", "register", "herald", "--json").stdout)
    with RedKey(server.url, made["apiKey"]) as herald:
        for decide in (("reject", "--note", "Louder."), ("approve",)):
            claim = herald.queues.claim_next("gates", made["agentId"])
            herald.claims.complete(claim.claim_id, summary="Hear ye")  # type: ignore[union-attr]
            gate = next(one for one in _told(server, "gate", "list") if one["taskId"] == task_id)["gateId"]
            assert "Hear ye" in _does(server, "gate", "show", str(gate))
            _does(server, "gate", decide[0], str(gate), *decide[1:])
    assert {one["state"] for one in _told(server, "gate", "list", "--closed")} == {"approved", "rejected"}
    assert rk.tasks.get(task_id).attempt == 2


def test_messages_keys_roles_and_workspaces(server: Server) -> None:
    _does(server, "agent", "register", "reader", "--role", "postal", "--no-key")
    sent = _told(server, "inbox", "send", "--to", "reader", "--subject", "Hello", "--question")[0]
    assert [one["subject"] for one in _told(server, "inbox", "list", "--to", "reader")] == ["Hello"]
    _does(server, "inbox", "read", str(sent["messageId"]))
    assert _told(server, "inbox", "list", "--to", "reader") == []
    key = _told(server, "key", "create", "--scope", "read", "--name", "looker")[0]
    looks = _call(server, "queue", "create", "forbidden", key=str(key["apiKey"]))
    assert (looks.exit_code, "[insufficient_scope]" in looks.stderr, "hint: " in looks.stderr) == (1, True, True)
    _does(server, "key", "revoke", str(key["keyId"]))
    gone = _call(server, "queue", "list", key=str(key["apiKey"]))
    assert (gone.exit_code, "REDKEY_API_KEY" in gone.stderr) == (1, True)
    assert _does(server, "role", "revoke", "postal", "reader") == "reader no longer has role_postal\n"
    assert _does(server, "role", "grant", "postal", "reader") == "reader has role_postal\n"
    assert re.search(r"^agents +reader$", _does(server, "role", "show", "postal"), re.MULTILINE)
    _does(server, "agent", "deactivate", "reader")
    assert _told(server, "agent", "show", "reader")[0]["active"] is False
    _does(server, "agent", "activate", "reader")
    assert server.workspace_id in _does(server, "workspace", "list")


def test_policies_of_a_workspace_are_shown_and_set(server: Server) -> None:
    assert re.search(r"^block auth +-$", _does(server, "workspace", "policy"), re.MULTILINE)
    for role in ("bank", "pm"):
        _does(server, "role", "create", role)
    route = ("--block-route", "auth=role_bank, role_pm")
    assert _does(server, "workspace", "policy", *route) == "changed: auth\n"
    assert _does(server, "workspace", "policy", *route) == "nothing changed\n"
    assert _told(server, "workspace", "policy")[0]["blockRoutes"]["auth"] == ["role_bank", "role_pm"]  # type: ignore[index]
    wrong = _call(server, "workspace", "policy", "--block-route", "auth")
    assert (wrong.exit_code, "TYPE=ROLES" in wrong.stderr) == (2, True)
    unknown = _call(server, "workspace", "policy", "--block-route", "boredom=role_pm")
    assert (unknown.exit_code, "boredom" in unknown.stderr) == (1, True)
    again = _call(server, "workspace", "raise-rules")
    assert (again.exit_code, "[rules_not_raised]" in again.stderr) == (1, True)


def test_queues_are_made_changed_paused_and_counted(server: Server) -> None:
    assert _does(server, "queue", "create", "counted", "--lease", "60") == "queue_counted\n"
    _task(server, "counted", "--title", "One")
    _does(server, "queue", "update", "counted", "--max-attempts", "3")
    assert _does(server, "queue", "pause", "counted") == "queue_counted is paused\n"
    found = _told(server, "queue", "show", "counted")[0]
    assert (found["leaseSeconds"], found["maxAttempts"], found["paused"]) == (60, 3, True)
    assert found["tasks"]["available"] == 1  # type: ignore[index]
    assert _does(server, "queue", "resume", "counted") == "queue_counted is open\n"
    with RedKey(server.url, server.key) as rk:
        rk.tasks.create_many("counted", [{"title": f"Task {number}"} for number in range(700)])
    assert re.search(r"^available +701$", _does(server, "queue", "show", "counted"), re.MULTILINE)
    picture = next(one for one in _told(server, "top")[0]["queues"] if one["queueId"] == "queue_counted")  # type: ignore[attr-defined]
    assert (picture["ready"], picture["oldestReadyAt"] is None) == (701, False)
    assert "60s" in _does(server, "queue", "list")


def test_agents_are_shown_by_their_names(server: Server) -> None:
    _does(server, "agent", "register", "nora", "--role", "named")
    first = _task(server, "named", "--title", "First", "--gate")
    claim = _claim(server, "nora", "named")
    explained = _does(server, "task", "explain", first)
    assert re.search(rf"^{first} is claimed by nora; its lease ends in 14m$", explained, re.MULTILINE)
    _does(server, "claim", "complete", claim)
    gate = next(one for one in _does(server, "gate", "list", "-q").split())
    assert re.search(r"^worker +nora$", _does(server, "gate", "show", gate), re.MULTILINE)
    assert re.search(r"^\w+ +rk_\w+ +active .* nora$", _does(server, "key", "list"), re.MULTILINE)
    assert re.search(r"^roles +named$", _does(server, "agent", "show", "nora"), re.MULTILINE)
    assert "task.claimed" in _does(server, "events", "tail", "--agent", "nora")


def test_queues_and_roles_go_by_the_names_that_people_give(server: Server) -> None:
    assert _does(server, "queue", "create", "Late Shift") == "queue_late_shift\n"
    made = _call(server, "task", "create", "--queue", "Late Shift", "--role", "Lead Writer", "--title", "Tidy up")
    assert (made.exit_code, "created the role lead_writer" in made.stderr) == (0, True)
    assert "Tidy up" in _does(server, "task", "list", "--queue", "Late Shift")
    assert re.search(r"^role +role_lead_writer$", _does(server, "role", "show", "Lead Writer"), re.MULTILINE)
    again = _call(server, "role", "create", "Lead Writer")
    assert (again.exit_code, "next: redkey role list" in again.stderr) == (1, True)
    bad = _call(server, "queue", "create", "x", "--id", "a b")
    assert (bad.exit_code, bad.stderr.count("An id has 1 to 26"), "`errors`" in bad.stderr) == (1, 1, False)
    unread = _call(server, "inbox", "read", "nope")
    assert (unread.exit_code, "next: redkey inbox list --all" in unread.stderr) == (1, True)


LISTS = [
    ("agent", "list"),
    ("gate", "list", "--closed"),
    ("inbox", "list", "--all"),
    ("key", "list"),
    ("queue", "list"),
    ("role", "list"),
    ("status",),
    ("task", "list"),
    ("usage", "show", "--by", "type"),
    ("usage", "credits"),
    ("workflow", "list", "--all"),
    ("workspace", "list"),
    ("events", "tail"),
]


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_what_is_shown_to_people_is_there_for_machines_and_has_no_colours_in_a_pipe(
    server: Server, command: tuple[str, ...]
) -> None:
    assert "\x1b" not in _does(server, *command)
    for one in _told(server, *command):
        assert isinstance(one, dict)


def test_for_scripts_there_are_ids_alone(server: Server) -> None:
    task_id = _task(server, "quiet", "--title", "Hush")
    _does(server, "agent", "register", "quiet-agent", "--no-key")
    assert _does(server, "task", "list", "--queue", "quiet", "-q") == f"{task_id}\n"
    claim_id = _does(server, "claim", "next", "--agent", "quiet-agent", "--queue", "quiet", "-q")
    assert re.fullmatch(r"clm_[0-9A-Z]{26}\n", claim_id)
    assert "queue_quiet\n" in _does(server, "queue", "list", "-q")
    assert re.fullmatch(r"evt_[0-9A-Z]{26}\n", _does(server, "events", "tail", "-n", "1", "-q"))
    nothing = _call(server, "claim", "next", "--agent", "quiet-agent", "--queue", "quiet", "-q")
    assert (nothing.exit_code, nothing.stdout) == (1, "")


def test_a_reader_that_has_seen_enough_is_no_failure(server: Server) -> None:
    for _ in range(3):
        _task(server, "seen-enough", "--title", "One of three")
    environment = {**os.environ, "REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    for arguments in (
        ["task", "list", "--queue", "seen-enough"],
        ["task", "list", "--queue", "seen-enough", "-q"],
        ["task", "list", "--queue", "seen-enough", "--json"],
        ["events", "tail", "--follow"],
    ):
        # The reader is gone before the first line: what a quick `head` does only sometimes.
        ours, theirs = os.pipe()
        os.close(ours)
        done = subprocess.run(
            [sys.executable, "-m", "redkey", *arguments],
            env=environment,
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        os.close(theirs)
        assert (done.returncode, done.stderr) == (0, ""), arguments


def test_what_strangers_write_cannot_command_the_terminal(server: Server, tmp_path: Path) -> None:
    evil, shown = "evil \x1b[2J\x07 text", "evil \\x1b[2J\\x07 text"
    task_id = _task(server, "strange", "--title", evil)
    _does(server, "agent", "register", "stranger", "--no-key")
    _does(server, "claim", "complete", _claim(server, "stranger", "strange"), "--summary", evil)
    plan = json.loads(PLAN.read_text())
    plan["tasks"][0]["title"] = evil
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    run = _does(server, "workflow", "start", str(tmp_path / "plan.json"), "--queue", "strange").strip()
    commands = (
        ("task", "list", "--queue", "strange"),
        ("task", "show", task_id),
        ("task", "watch", task_id),
        ("workflow", "show", run),
    )
    for command in commands:
        said = _does(server, *command)
        assert "\x1b" not in said
        assert shown in said
    assert "\x1b" not in _does(server, "workflow", "graph", run)


def test_input_comes_as_text_from_a_file_or_from_standard_input(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "input.json"
    file.write_text('{"from": "file"}')
    given = [
        _does(server, "task", "create", "--title", "x", "--input", text, told='{"from": "stdin"}').strip()
        for text in ('{"from": "text"}', f"@{file}", "-")
    ]
    assert [_told(server, "task", "show", one)[0]["input"] for one in given] == [
        {"from": "text"},
        {"from": "file"},
        {"from": "stdin"},
    ]
    for wrong in ("{not json", "@/nowhere/x.json", '{"a": 1, "a": 2}'):
        assert _call(server, "task", "create", "--title", "x", "--input", wrong).exit_code == 2


def test_without_a_server_the_next_step_is_told(tmp_path: Path) -> None:
    none = {"REDKEY_DATA": str(tmp_path), "REDKEY_URL": None, "REDKEY_API_KEY": None}
    unknown = CliRunner().invoke(main, ["status"], env=none)
    assert (unknown.exit_code, "redkey serve" in unknown.stderr) == (1, True)
    refused = CliRunner().invoke(
        main, ["status"], env={"REDKEY_URL": "http://127.0.0.1:9", "REDKEY_API_KEY": "rk_a_b", "REDKEY_DATA": None}
    )
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1] == "next: redkey serve --port 9"


def test_a_live_list_needs_a_terminal_and_says_what_does_not(server: Server) -> None:
    refused = _call(server, "task", "list", "--watch")
    assert (refused.exit_code, "redkey events tail --follow" in refused.stderr) == (2, True)


def test_events_are_followed_as_they_happen_until_ctrl_c(server: Server, rk: RedKey) -> None:
    environment = {**os.environ, "REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}
    command = [sys.executable, "-m", "redkey", "events", "tail", "-n", "0", "--follow", "--queue", "followed", "--json"]
    _does(server, "queue", "create", "followed")
    tail = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert tail.stdout is not None
    stop = threading.Event()

    def create() -> None:
        # Until it was seen: nobody knows when the other process has begun to listen.
        while not stop.wait(0.2):
            rk.tasks.create("followed", title="Follow me")

    made = threading.Thread(target=create)
    made.start()
    event = json.loads(tail.stdout.readline())
    stop.set()
    made.join()
    tail.send_signal(signal.SIGINT)
    _, said = tail.communicate(timeout=PATIENCE_SECONDS)
    assert (event["type"], tail.returncode, said) == ("task.created", 130, "")
