"""Shells complete commands and options, without paying for what they do not run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from redkey.cli import COMMANDS, MEANT, SECTIONS, main
from redkey.client import RedKey
from tests.harness.server import serving


def _complete(*words: str) -> list[str]:
    environment = {**os.environ, "_REDKEY_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words)}
    environment["COMP_CWORD"] = str(len(words) - 1)
    # As the installed command runs: click looks for the variable under the program's name.
    command = [sys.executable, "-c", "import sys; from redkey.cli import main; main(prog_name='redkey')"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_REDKEY_COMPLETE" in result.stdout
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(result.stdout)
        assert subprocess.run([shell, "-n", str(script)]).returncode == 0


def test_commands_subcommands_and_options_are_completed() -> None:
    assert _complete("redkey", "wor") == ["workflow", "workspace"]
    assert _complete("redkey", "task", "re") == ["result", "retry"]
    assert "--role" in _complete("redkey", "task", "create", "--")


def test_names_and_ids_of_the_server_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path) as server:
        monkeypatch.setenv("REDKEY_URL", server.url)
        monkeypatch.setenv("REDKEY_API_KEY", server.key)
        with RedKey(server.url, server.key) as rk:
            rk.queues.create("jobs")
            rk.roles.create("writer")
            task = rk.tasks.create("jobs", title="One").task_id
        assert CliRunner().invoke(main, ["agent", "register", "ada"]).exit_code == 0
        assert _complete("redkey", "task", "list", "--queue", "j") == ["jobs"]
        assert _complete("redkey", "task", "create", "--role", "wr") == ["writer"]
        assert _complete("redkey", "agent", "show", "a") == ["ada"]
        assert _complete("redkey", "claim", "next", "--agent", "a") == ["ada"]
        assert _complete("redkey", "task", "show", "task_") == [task]
        assert _complete("redkey", "task", "show", task[5:12]) == [task[5:]]
        with RedKey(server.url, server.key) as rk:
            [ada] = rk.agents.list()
            claim = rk.queues.claim_next("jobs", ada.agent_id)
            assert claim.status == "claimed"
            told = [rk.inbox.send(to, "Hello").message_id for to in ("human", "ada")]
            hook = rk.webhooks.create("https://example.com/events").webhook_id
            event = next(iter(rk.ledger.query(order="desc", limit=1))).event_id
            rk.projects.create("Season")
        assert _complete("redkey", "claim", "complete", "clm_") == [claim.claim_id]
        assert _complete("redkey", "claim", "heartbeat", claim.claim_id[4:12]) == [claim.claim_id[4:]]
        assert _complete("redkey", "inbox", "read", "msg_") == told
        assert _complete("redkey", "webhook", "show", "whk_") == [hook]
        assert event in _complete("redkey", "events", "show", "evt_")
        assert event in _complete("redkey", "receipt", "get", event[:20])
        assert _complete("redkey", "project", "show", "s") == ["season"]
    # Nothing is offered, and nothing is said, when the server is gone.
    assert "".join(_complete("redkey", "task", "list", "--queue", "j")) == ""


def test_completing_a_name_imports_no_command() -> None:
    check = (
        "import sys; from redkey.cli import main; import click; "
        "main.shell_complete(click.Context(main), 't'); "
        "print([name for name in sys.modules if name.startswith('redkey.cli.')])"
    )
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout == "[]\n"


def test_the_help_groups_every_command_once() -> None:
    named = [name for section in SECTIONS.values() for name in section]
    assert sorted(named) == sorted(COMMANDS) == sorted(set(named))
    shown = CliRunner().invoke(main, ["--help"]).stdout
    assert [title for title in SECTIONS if f"\n{title}:\n" not in shown] == []


@pytest.mark.parametrize(("word", "meant"), [("tasks", "task"), ("evnets", "events"), *MEANT.items()])
def test_a_word_that_is_no_command_is_answered_with_the_one_that_was_meant(word: str, meant: str) -> None:
    result = CliRunner().invoke(main, [word])
    assert result.exit_code == 2
    assert result.stderr.endswith(f"Did you mean: redkey {meant}\n")
    name, *rest = meant.split()
    assert CliRunner().invoke(main, [name, *rest, "--help"]).exit_code == 0
