"""Typical mistakes: the message names what is wrong, where it came from, and the next step; exit codes are right."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pytest

from redkey import __version__
from tests.cli.mistakes import PATIENCE_SECONDS, Scene, scene_of
from tests.harness.acts import until

NO, USED_WRONGLY = 1, 2
NEXT_STEP = re.compile(r"next: |hint: |Did you mean|did you mean|see it with: redkey|start one with redkey|Try 'redkey")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene_of(tmp_path_factory.mktemp("mistakes")) as made:
        yield made


class Mistake(NamedTuple):
    """What is typed, in which environment, and what is answered; braces are names of the scene."""

    what: str
    words: str
    exit_code: int
    # What is wrong, where it came from, what to do.
    said: tuple[str, ...]
    environment: Mapping[str, str | None] = {}


NOWHERE = {"REDKEY_URL": None, "REDKEY_API_KEY": None}
MISTAKES = [
    Mistake(
        "no server",
        "task list",
        NO,
        ("no RedKey server found", "{folder}/none has no credentials", "REDKEY_DATA", "next: redkey serve\n"),
        {**NOWHERE, "REDKEY_DATA": "{folder}/none"},
    ),
    Mistake(
        "a dead URL in credentials",
        "task list",
        NO,
        (
            "no answer from http://127.0.0.1:9",
            "from {folder}/dead/credentials.json",
            "next: redkey serve --data {folder}/dead",
        ),
        {**NOWHERE, "REDKEY_DATA": "{folder}/dead"},
    ),
    Mistake(
        "a URL without a scheme",
        "task list",
        NO,
        ("no answer from http://127.0.0.1:9 ", "(from REDKEY_URL)", "next: redkey serve --port 9"),
        {"REDKEY_URL": "127.0.0.1:9"},
    ),
    Mistake(
        "a URL of another scheme",
        "task list --url htp://localhost",
        NO,
        ("the url given does not name a server", "use http://host:port"),
    ),
    Mistake(
        "a server of another version",
        "task list",
        NO,
        ("404", "server: {strange_url} (from REDKEY_URL)", "or one of another version", "next: redkey --version\n"),
        {"REDKEY_URL": "{strange_url}"},
    ),
    Mistake(
        "a server of a newer version",
        "task list",
        NO,
        (
            f"The server is RedKey 9.9.0, this command is RedKey {__version__}.",
            "server: {newer_url} (from REDKEY_URL)",
            "next: redkey --version\n",
        ),
        {"REDKEY_URL": "{newer_url}"},
    ),
    Mistake(
        "a socket on which nothing listens",
        "task list",
        NO,
        ("no answer from unix:/dev/null (from REDKEY_URL)", "hint: is the server running, and is its address right?"),
        {"REDKEY_URL": "unix:/dev/null"},
    ),
    Mistake(
        "a wrong key",
        "task list",
        NO,
        (
            "The key or token is not valid",
            "{url} (from REDKEY_URL), key from REDKEY_API_KEY",
            "hint: set REDKEY_API_KEY",
        ),
        {"REDKEY_API_KEY": "rk_wrong"},
    ),
    Mistake(
        "a revoked key",
        "task list",
        NO,
        ("was revoked", "key from REDKEY_API_KEY", "hint: set REDKEY_API_KEY to a valid key"),
        {"REDKEY_API_KEY": "{revoked_key}"},
    ),
    Mistake(
        "the key of another server",
        "task list",
        NO,
        ("invalid_token", "{url} (from REDKEY_URL), key from REDKEY_API_KEY", "hint: set"),
        {"REDKEY_API_KEY": "{foreign_key}"},
    ),
    Mistake(
        "an agent's key for an admin's work",
        "queue create more",
        NO,
        ("This needs a key with the scope produce", "key from REDKEY_API_KEY", "hint: use a key with this scope"),
        {"REDKEY_API_KEY": "{ada_key}"},
    ),
    Mistake(
        "a key that overrides the right one",
        "task list",
        NO,
        ("invalid_token", "REDKEY_API_KEY, which overrides {data}/credentials.json", "next: unset REDKEY_API_KEY\n"),
        {"REDKEY_URL": None, "REDKEY_DATA": "{data}", "REDKEY_API_KEY": "rk_old"},
    ),
    Mistake(
        "no credentials after a restore",
        "task list",
        NO,
        ("{folder}/restored has a ledger but no credentials.json", "next: redkey key recover {folder}/restored\n"),
        {**NOWHERE, "REDKEY_DATA": "{folder}/restored"},
    ),
    Mistake(
        "a restore over a data directory in use",
        "restore {folder}/backup {data}",
        NO,
        (
            "{data} exists already and is not overwritten [target_exists]",
            "hint: name a place where nothing is yet; a server that uses this one is not disturbed",
        ),
    ),
    Mistake(
        "a data directory that is a file",
        "serve --data {a_file}",
        USED_WRONGLY,
        ("Invalid value for '--data'", "'{a_file}' is a file", "redkey serve --help"),
    ),
    Mistake("an unknown command", "tsk list", USED_WRONGLY, ("No such command 'tsk'", "Did you mean: redkey task")),
    Mistake("a word for a command", "worker", USED_WRONGLY, ("No such command 'worker'", "Did you mean: redkey run")),
    Mistake("an unknown subcommand", "task lst", USED_WRONGLY, ("No such command 'lst'", "Did you mean 'list'")),
    Mistake("an unknown option", "task list --quue x", USED_WRONGLY, ("No such option '--quue'", "'--queue'")),
    Mistake(
        "an unknown setting in the file",
        "serve --config {unknown_toml}",
        NO,
        (
            "{unknown_toml}: prot is not a setting",
            "did you mean port?",
            "take it out",
            "next: redkey config show --config /dev/null\n",
        ),
    ),
    Mistake(
        "an unknown setting in a variable",
        "serve",
        NO,
        ("REDKEY_PROT is not a setting", "did you mean REDKEY_PORT?", "next: env -u REDKEY_PROT redkey config show\n"),
        {"REDKEY_PROT": "1", **NOWHERE},
    ),
    Mistake(
        "a setting of the wrong type",
        "serve --config {typed_toml}",
        NO,
        ("{typed_toml}: port: Expected `int`, got `str`", "next: redkey config show --config /dev/null\n"),
    ),
    Mistake(
        "a variable of the wrong type",
        "serve",
        NO,
        ("REDKEY_PORT: port: Expected `int`", "next: env -u REDKEY_PORT redkey config show\n"),
        {"REDKEY_PORT": "high", **NOWHERE},
    ),
    Mistake(
        "a config file that is not TOML",
        "serve --config {broken_toml}",
        NO,
        ("{broken_toml} is not TOML", "line 1, column 6", "hint: "),
    ),
    Mistake(
        "a config file that is not there",
        "serve --config {folder}/none.toml",
        NO,
        ("{folder}/none.toml cannot be read", "No such file", "hint: "),
    ),
    Mistake(
        "an id of another kind",
        "task show {agent}",
        USED_WRONGLY,
        ("{agent} is the id of an agent, and a task is wanted", "redkey agent show {agent}"),
    ),
    Mistake(
        "a task for an agent",
        "agent show {held}",
        USED_WRONGLY,
        ("{held} is the id of a task, and an agent is wanted", "redkey task show {held}"),
    ),
    Mistake(
        "an id of another workspace",
        "task show {held}",
        NO,
        ("There is no such task in this workspace: {held} (from TASK)", "next: redkey task list\n"),
        {"REDKEY_URL": "{foreign_url}", "REDKEY_API_KEY": "{foreign_key}"},
    ),
    Mistake("an id cut too short", "task show task_ZZ", NO, ("no such task", "task_ZZ (from TASK)", "next: redkey")),
    Mistake(
        "an ambiguous id",
        "task show {short}",
        USED_WRONGLY,
        ("{short} is the beginning of several ids", "{held}", "give more of it"),
    ),
    Mistake(
        "an unknown queue",
        "task list --queue nope",
        NO,
        ("There is no such queue in this workspace: nope (from --queue)", "next: redkey queue list\n"),
    ),
    Mistake("an unknown role", "role grant nope ada", NO, ("no such role", "nope (from ROLE)", "next: redkey role")),
    Mistake("an unknown agent", "agent show nope", NO, ("no such agent", "nope (from AGENT)", "next: redkey agent")),
    Mistake(
        "an unknown agent in a variable",
        "claim next --queue jobs",
        NO,
        ("no such agent", "nope (from REDKEY_AGENT_ID)", "next: redkey agent list\n"),
        {"REDKEY_AGENT_ID": "nope"},
    ),
    Mistake(
        "an unknown plan",
        "workflow start nope",
        USED_WRONGLY,
        ("nope cannot be read: there is no such file. PLAN is a file, or the id", "redkey workflow start --help"),
    ),
    Mistake(
        "an unknown contract",
        "contract show nope",
        NO,
        ("there is no output contract nope", "research_report", "next: redkey contract list\n"),
    ),
    Mistake(
        "an input that is not JSON",
        "task create --title x --input {{bad",
        USED_WRONGLY,
        ("Invalid value for '--input'", "not JSON", "redkey task create --help"),
    ),
    Mistake(
        "a file that is not there",
        "task create --title x --input @none.json",
        USED_WRONGLY,
        ("Invalid value for '--input'", "none.json cannot be read: No such file"),
    ),
    Mistake(
        "a plan with a cycle",
        "workflow start {cycle_json}",
        NO,
        ("plan_invalid", "These tasks wait for one another: a -> b -> a", "next: redkey plan validate {cycle_json}\n"),
    ),
    Mistake(
        "a card with an unknown field",
        "card lint {card_json}",
        NO,
        (
            '{card_json}: /nme: schema_additionalProperties: "nme" is not a field',
            "hint: the fields of a card are capabilities, card_version",
        ),
    ),
    Mistake(
        "a card with a misspelled field",
        "card lint {typo_json}",
        NO,
        ('/identty: schema_additionalProperties: "identty"', "hint: did you mean identity in place of identty?"),
    ),
    Mistake(
        "a claim without an agent",
        "claim next --queue jobs",
        USED_WRONGLY,
        ("no agent given", "use --agent, or set REDKEY_AGENT_ID", "redkey agent list"),
    ),
    Mistake(
        "a claim of a held task",
        "claim take {held} --agent cy",
        NO,
        ("missed: ada was first; its lease ends in 9m", "next: redkey claim next --queue jobs --agent {cy}\n"),
    ),
    Mistake(
        "a claim in a paused queue",
        "claim take {parked} --agent ada",
        NO,
        ("the queue shut is paused", "next: redkey queue resume shut\n"),
    ),
    Mistake(
        "the next task of a paused queue",
        "claim next --queue shut --agent ada",
        NO,
        ("no task in the queue shut", "the queue shut is paused", "next: redkey queue resume shut\n"),
    ),
    Mistake(
        "a claim without the role",
        "claim take {open} --agent bo",
        NO,
        (
            "rejected: missing role: writer [missing_role]",
            "hint: this needs a key with the scope admin",
            "next: redkey role grant",
        ),
    ),
    Mistake(
        "completing without the outputs",
        "claim complete {claim}",
        NO,
        ("No ready artifact on this attempt for: report", "hint: hand it over with --artifact"),
    ),
    Mistake(
        "completing another agent's claim",
        "claim complete {claim}",
        NO,
        ("no such claim", "{claim} (from CLAIM)", "hint: a claim is seen by its own agent", "next: redkey task list"),
        {"REDKEY_API_KEY": "{bo_key}"},
    ),
    Mistake(
        "completing twice",
        "claim complete {done_claim}",
        NO,
        ("The task is completed; a terminal task does not change", "hint: it has ended"),
    ),
    Mistake(
        "approving one's own work",
        "gate approve {gate}",
        NO,
        (
            "did the work",
            "key from REDKEY_API_KEY",
            "hint: another person",
            "next: redkey gate show {gate}\n",
        ),
        {"REDKEY_API_KEY": "{ada_key}"},
    ),
    Mistake(
        "approving one's own work where the policy forbids it",
        "gate approve {own_gate}",
        NO,
        ("did the work", "key from REDKEY_API_KEY", "hint: another person", "next: redkey gate show {own_gate}\n"),
        {"REDKEY_API_KEY": "{alone_key}"},
    ),
    Mistake(
        "an answer to a task that is not blocked",
        "task unblock {open} --answer yes",
        NO,
        ("The task is available, not blocked", "next: redkey task explain {open}\n"),
    ),
    Mistake(
        "cancelling a finished task",
        "task cancel {done}",
        NO,
        ("The task is completed", "hint: it has ended", "next: redkey task show {done}\n"),
    ),
    Mistake(
        "too large an input",
        "task create --title x --input @{large_json}",
        NO,
        ("The body is larger than 1,048,576 bytes", "hint: --input takes at most 1 MiB"),
    ),
    Mistake(
        "a secret in an input",
        "task create --title x --input @{secret_json}",
        NO,
        ("This looks like a secret (aws_access_key)", "/input/key", "hint: Remove the secret"),
    ),
    Mistake(
        "artifacts of a task that has none",
        "artifact get {open}",
        NO,
        ("has no artifacts; it is available", "next: redkey artifact list {open}"),
    ),
    Mistake(
        "the result of an open task",
        "task result {open}",
        NO,
        ("{open} is available", "next: redkey task watch {open}\n"),
    ),
    Mistake(
        "a chat without a bus",
        "bus chat --home {folder}/none",
        NO,
        ("no bus answers at {folder}/none/coord.sock", "start one with redkey bus serve, or redkey serve [no_bus]"),
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.what.replace(" ", "-"))
def test_a_mistake_is_explained(scene: Scene, mistake: Mistake) -> None:
    result = scene.makes(mistake.words, mistake.environment)
    said = result.output
    assert result.exit_code == mistake.exit_code, said
    for piece in mistake.said:
        assert piece.format(**scene.words) in said, said
    # Where the message does not contain the next step itself, it follows it.
    assert NEXT_STEP.search(said), said
    assert "Traceback" not in said
    assert result.exception is None or isinstance(result.exception, SystemExit)


# The same for what needs a process of its own: a server that is refused, a signal, a pipe, a terminal.
PREPARED = "import os, sys, errno, redkey.stores.disk as disk; from redkey.cli import main\n"
FULL = "def full(**_): raise OSError(errno.ENOSPC, 'No space left on device')\ndisk.TemporaryFile = full\n"
WITHOUT_MCP = "sys.modules['mcp'] = None\n"
PROCESSES = [
    Mistake(
        "a port that is taken",
        "serve --port {port} --data {folder}/taken",
        NO,
        (
            "port {port} of 127.0.0.1 is in use",
            "port: {port} (from --port)",
            "next: redkey serve --port 0 --data {folder}/taken",
        ),
    ),
    Mistake(
        "a data directory of a newer version",
        "serve --port 0 --data {folder}/newer",
        NO,
        ("has format 9999", "data: {folder}/newer (from --data)", "hint: install the RedKey that wrote it"),
    ),
    Mistake(
        "a read-only data directory",
        "serve --port 0",
        NO,
        (
            "the data directory cannot be used",
            "data: /sys/redkey (from REDKEY_DATA)",
            "hint: check that the directory can",
        ),
        {"REDKEY_DATA": "/sys/redkey"},
    ),
    Mistake(
        "a live view without a terminal",
        "task list --watch",
        USED_WRONGLY,
        ("a live view needs a terminal; elsewhere use redkey events tail --follow", "redkey task list --help"),
    ),
]


@pytest.mark.parametrize("mistake", PROCESSES, ids=lambda one: one.what.replace(" ", "-"))
def test_a_process_that_cannot_go_on_says_why(scene: Scene, mistake: Mistake) -> None:
    done = scene.runs(mistake.words, mistake.environment)
    assert done.returncode == mistake.exit_code, done.stderr
    for piece in mistake.said:
        assert piece.format(**scene.words) in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("before", "words", "said"),
    [
        (FULL, ["serve", "--port", "0", "--data", "full"], ("no space is left", "(from --data)", "hint: free space")),
        (WITHOUT_MCP, ["mcp"], ("pip install 'redkey[mcp]'", "[extra_missing]")),
    ],
    ids=["a-full-disk", "a-missing-extra"],
)
def test_what_the_machine_lacks_is_named(scene: Scene, before: str, words: list[str], said: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{PREPARED}{before}main({words!r})"],
        cwd=scene.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == NO, done.stderr
    assert [piece for piece in said if piece not in done.stderr] == [], done.stderr


def test_a_report_after_the_lease_says_whose_the_task_is_now(scene: Scene) -> None:
    """The agent slept for longer than its lease, and another one has the task."""
    until(lambda: scene.makes(f"claim take {scene.late} --agent bo", {}).exit_code == 0, PATIENCE_SECONDS)
    late = scene.makes("claim complete {late_claim}", {"REDKEY_API_KEY": "{ada_key}"})
    assert late.exit_code == NO
    assert "[lease_lost]" in late.output
    assert "hint: its lease ended and another agent has the task" in late.output


def test_ctrl_c_ends_a_live_view_with_130_and_without_a_traceback(scene: Scene) -> None:
    command = [sys.executable, "-m", "redkey", "task", "watch", scene.open]
    environment = {**os.environ, "REDKEY_URL": scene.server.url, "REDKEY_API_KEY": scene.server.key}
    watcher = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert watcher.stdout is not None
    assert "task.created" in watcher.stdout.readline()
    watcher.send_signal(signal.SIGINT)
    _, said = watcher.communicate(timeout=PATIENCE_SECONDS)
    assert (watcher.returncode, said) == (130, "")


def test_a_closed_pipe_is_no_failure(scene: Scene) -> None:
    command = f"{sys.executable} -m redkey events tail | head -n 1"
    environment = {**os.environ, "REDKEY_URL": scene.server.url, "REDKEY_API_KEY": scene.server.key}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 1)


def test_at_40_columns_no_line_is_wider_and_no_word_breaks(scene: Scene) -> None:
    shown = on_terminal(scene, 40, "task", "list")
    assert max(map(len, shown.splitlines())) <= 40
    assert "available" in shown
    assert scene.open[5:13] in shown


def test_at_40_columns_no_word_of_a_hint_breaks(scene: Scene) -> None:
    said = on_terminal(scene, 40, "claim", "complete", scene.words["done_claim"])
    assert "hint: it has ended and does not change\n  any more\n" in said
    assert max(map(len, said.splitlines())) <= 40, said


def on_terminal(scene: Scene, columns: int, *words: str) -> str:
    """What a command prints on a terminal of this width, without its colours."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "REDKEY_URL": scene.server.url, "REDKEY_API_KEY": scene.server.key}
    environment |= {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "redkey", *words], env=environment, stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    process.wait(PATIENCE_SECONDS)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("hours", "said"), [(-1, "59m behind"), (1, "1h ahead of")], ids=["an-hour-behind", "an-hour-ahead"]
)
def test_a_clock_that_is_wrong_is_named(scene: Scene, hours: int, said: str) -> None:
    moved = (
        "from datetime import datetime, timedelta; import redkey.cli.screen as screen\n"
        "class Moved(datetime):\n"
        "    @classmethod\n"
        f"    def now(cls, tz=None): return datetime.now(tz) + timedelta(hours={hours})\n"
        "screen.datetime = Moved\n"
    )
    done = scene.runs_after(moved, "status")
    assert done.returncode == 0, done.stderr
    assert f"this machine's clock is {said} the server's; set the one that is wrong" in done.stdout


HOLDER = """
import sys
from pathlib import Path
from redkey.stores.opening import open_store
with open_store(Path(sys.argv[1]), create=False) as store, store.write(store.topics()[0]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_data_directory_in_use_is_named(scene: Scene) -> None:
    """Two servers may share one; a process that writes and does not finish may not keep a second one waiting."""
    data = str(scene.folder / "held")
    scene.does(f"restore {scene.folder}/backup {data}")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, data], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        done = scene.runs("serve --port 0 --data {folder}/held", {})
        holder.communicate(timeout=PATIENCE_SECONDS)
    assert done.returncode == NO, done.stderr
    for piece in ("another writer has had the lock", "[writer_busy]", f"data: {data} (from --data)", "hint: another"):
        assert piece in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_the_table_is_long_enough() -> None:
    assert len({one.what for one in [*MISTAKES, *PROCESSES]}) >= 62
