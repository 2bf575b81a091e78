"""`redkey run`: run agents on a queue, one by its options, or a fleet from a file."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.report import shown
from redkey.cli.screen import on_terminal
from redkey.cli.session import connect

if TYPE_CHECKING:
    from redkey.runner.fleet import Fleet
    from redkey.runner.run import Told
    from redkey.runner.spec import Spec

_DIRECTORY = click.Path(exists=True, file_okay=False)
_FILE = click.Path(exists=True, dir_okay=False)


def memory_options() -> list[Any]:
    """The options of an agent's memory; `redkey prompt show` has them too."""
    return [
        click.option("--memory", type=click.Choice(["auto", "words", "off"]), help="The memory's index [auto]."),
        click.option(
            "--memory-store",
            metavar="URL",
            help="A PostgreSQL for memories, which runners share [REDKEY_MEMORY_STORE, else a file under --work].",
        ),
        click.option(
            "--memory-floor",
            type=click.FloatRange(0, 1),
            help="How near a memory must be to be recalled, 0 to 1 [the model's own].",
        ),
    ]


def with_memory_options(function: Any) -> Any:
    """Add the memory options to a command."""
    for option in reversed(memory_options()):
        function = option(function)
    return function


def agent_options(function: Any) -> Any:
    """The options of an agent's run; options that are not given keep their defaults."""
    options = [
        click.option("--card", type=_FILE, help="The Agent Card."),
        click.option("--persona", type=_FILE, help="Prose for an agent that has no card yet; needs --name."),
        click.option("--name", metavar="SLUG", help="Another slug than the card's."),
        click.option("--role", "roles", multiple=True, metavar="ROLE", help="A role that it needs; may be repeated."),
        click.option("--exec", "exec_", metavar="COMMAND", help="The agent is this program, run by the shell."),
        click.option("--python", metavar="MODULE:FUNCTION", help="The agent is this Python callable."),
        click.option("--python-path", multiple=True, type=_DIRECTORY, help="Where the callable's module is."),
        click.option("--claude-code", is_flag=True, default=None, help="The agent is Claude Code (claude -p)."),
        click.option("--codex", is_flag=True, default=None, help="The agent is Codex (codex exec)."),
        click.option("--gemini", is_flag=True, default=None, help="The agent is Gemini CLI (gemini -p)."),
        click.option("--anthropic", is_flag=True, default=None, help="The agent is the card's model at Anthropic."),
        click.option("--openai", metavar="URL", help="The agent is the card's model at an OpenAI-compatible server."),
        click.option("--a2a", metavar="URL", help="The agent is a remote one that speaks A2A."),
        click.option("--a2a-header", "a2a_headers", multiple=True, metavar="NAME: VALUE", help="A header it gets."),
        click.option("--a2a-oauth", metavar="URL", help="Where its tokens come from (A2A_CLIENT_ID, _SECRET)."),
        click.option("--executor", metavar="NAME,NAME", help="The first available of several, as in codex,exec."),
        click.option("--account", metavar="NAME", help="The account whose usage limits it shares [its key or login]."),
        click.option("--allow", "allowed", multiple=True, metavar="COMMAND", help="A command that a model may run."),
        click.option(
            "--max-cost", multiple=True, metavar="[SCOPE=]USD", help="Cost cap; SCOPE is task, workflow, day or agent."
        ),
        click.option("--evaluator", metavar="COMMAND", help="Judges what briefs ask to evaluate; or anthropic:MODEL."),
        click.option("--skill", "skills", multiple=True, metavar="NAME", help="A skill of its own; may be repeated."),
        click.option("--skills", "skills_dirs", multiple=True, type=_DIRECTORY, help="A directory of skills."),
        click.option("--contracts", "contracts_dirs", multiple=True, type=_DIRECTORY, help="A directory of contracts."),
        click.option("--prices", type=_FILE, help="A price table of your own."),
        click.option("--work", type=click.Path(file_okay=False), help="The runner's directory [.redkey/runner]."),
        click.option("--workdir", type=_DIRECTORY, help="One directory for all tasks [a new one for each]."),
        click.option("--repo", "repositories", multiple=True, metavar="PREFIX", help="Repositories it may clone."),
        click.option("--check", "checks", multiple=True, metavar="[NAME=]COMMAND", help="A command work must pass."),
        click.option("--merge-into", metavar="BRANCH", help="Merge finished work into this branch, one by one."),
        click.option("--push", is_flag=True, default=None, help="Push the branch of a pull request to its repository."),
        click.option("--own-clone", is_flag=True, default=None, help="Open worktrees in the clone that --repo names."),
        click.option(
            "--sandbox",
            type=click.Choice(["offline", "online"]),
            is_flag=False,
            flag_value="offline",
            help="Run programs in bubblewrap.",
        ),
        click.option("--sandbox-image", metavar="IMAGE", help="Run them in containers of this image instead."),
        click.option("--sandbox-write", multiple=True, type=_DIRECTORY, help="A directory they may write there."),
        click.option("--keep-days", type=float, help="Days that logs of failed attempts are kept [7]."),
        click.option("--env", multiple=True, metavar="NAME", help="A variable that the agent gets; may be repeated."),
        *memory_options(),
        click.option("--tries", type=click.IntRange(1, 99), help="Tries until the verification passes [2]."),
        click.option("--lease", "lease_seconds", type=click.IntRange(5, 86400), help="Seconds of a lease [60]."),
        click.option("--limit", "limit_seconds", type=float, help="Seconds that one run may take [3600]."),
        click.option("--grace", "grace_seconds", type=float, help="Seconds between SIGTERM and SIGKILL [5]."),
        click.option("--budget", "budget_tokens", type=click.IntRange(1), help="Tokens that the prompt may take."),
        click.option("--inbox-every", "inbox_seconds", type=float, help="Seconds between looks at the inbox [15]."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def spec_of(options: dict[str, Any]) -> Spec:
    """Build the spec from the given options."""
    from redkey.runner.spec import read_spec

    given = {name: value for name, value in options.items() if value not in (None, ())}
    if "exec_" in given:
        given["exec"] = given.pop("exec_")
    if "executor" in given:
        given["executor"] = [name.strip() for name in given["executor"].split(",")]
    if "max_cost" in given:
        given["max_cost"] = dict(_cap(text) for text in given["max_cost"])
    return read_spec(given)


def _cap(text: str) -> tuple[str, float]:
    """Parse a value of --max-cost: a scope and its dollars; without a scope it is for a task."""
    scope, _, number = text.rpartition("=")
    try:
        return scope or "task", float(number)
    except ValueError as cause:
        raise click.BadParameter(f"{text!r} is no number of dollars", param_hint="--max-cost") from cause


@click.command()
@click.option("--queue", metavar="QUEUE", help="The queue to work on [default].")
@click.option("--fleet", type=_FILE, help="Run the agents of this file; see docs/runner.md.")
@click.option("--agent", metavar="NAME", help="Only this one of the fleet.")
@click.option("--concurrency", type=click.IntRange(1, 256), help="Tasks at once [1].")
@agent_options
@click.option("--url", metavar="URL", help="The server [REDKEY_URL, else as in the data directory].")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="The server's data directory [.redkey].")
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON lines.")
def command(
    queue: str | None,
    fleet: str | None,
    agent: str | None,
    url: str | None,
    data: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run an agent on a queue: claim, prompt, run, verify, report.

    \b
    redkey run --claude-code --repo . --concurrency 4
    redkey run --card quinn.json --queue dev --exec './agent.sh'
    redkey run --fleet fleet.toml

    Stop it with Ctrl-C or SIGTERM: running tasks may finish, the others are released.
    """
    from redkey.runner.process import hide_process

    hide_process()
    if fleet is None:
        _run_one(spec_of({"queue": queue, **options}), url, data, as_json=as_json)
        return
    if queue is not None or any(value not in (None, ()) for value in options.values()):
        raise click.UsageError("a fleet's agents have their settings in its file")
    from redkey.runner.spec import read_fleet

    specs = read_fleet(Path(fleet))
    if agent is None:
        _run_fleet(fleet, list(specs), url, data, as_json=as_json)
    elif agent in specs:
        _stop_with_input()
        _run_member(specs[agent], url, data)
    else:
        raise click.UsageError(f"{fleet} has no agent {agent}; it has {', '.join(specs)}")


def _run_one(spec: Spec, url: str | None, data: Path | None, *, as_json: bool) -> None:
    from redkey.runner.run import run_agent

    # Before the work starts there is nothing to release; afterwards the worker handles signals itself.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with connect(url, data) as rk:
            run_agent(spec, rk, _print_json if as_json else _print_line)
    finally:
        signal.signal(signal.SIGTERM, before)


def _run_member(spec: Spec, url: str | None, data: Path | None) -> None:
    """Run one agent of a fleet; the exit code tells the fleet if a restart is useless."""
    from redkey.cli.refusal import print_refusal
    from redkey.errors import ConfigRefused, RunnerError
    from redkey.runner.fleet import BROKEN_EXIT

    try:
        _run_one(spec, url, data, as_json=True)
    except (ConfigRefused, RunnerError) as refused:
        print_refusal(refused)
        sys.exit(BROKEN_EXIT)


def _stop_with_input() -> None:
    """Stop when the standard input ends, because the fleet that started this process has ended."""

    def wait() -> None:
        # Read the descriptor and not the stream: a stream that a thread reads delays the end of the process.
        while os.read(0, 4096):
            continue
        # Stop as on a user's signal: at once before the work has started, cleanly after that.
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _print_json(told: Told) -> None:
    import msgspec

    sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
    sys.stdout.buffer.flush()


def _print_line(told: Told) -> None:
    words = [told.at, told.agent, told.event, told.task_id]
    if told.task_id and told.event != "working":
        words.append(f"{told.seconds:.1f}s")
    if told.cost_usd:
        words.append(f"${told.cost_usd:.6f}")
    words.append(shown(told.title if told.event == "working" else told.reason))
    click.echo(" ".join(word for word in words if word))


def _run_fleet(file: str, names: list[str], url: str | None, data: Path | None, *, as_json: bool) -> None:
    import asyncio

    from redkey.runner.fleet import Fleet, own_command

    passed = [*(["--url", url] if url else []), *(["--data", str(data)] if data else [])]

    async def run() -> None:
        show = _Table() if on_terminal() and not as_json else _Lines(as_json=as_json)
        fleet = Fleet(names, own_command(file, passed), changed=lambda: show(fleet))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, fleet.stop)
        with show:
            await fleet.run()
        if all(agent_status.state == "broken" for agent_status in fleet.agents.values()):
            raise click.ClickException("no agent of the fleet can be started")

    asyncio.run(run())


class _Lines:
    """Print a line for each change, if there is no terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json, self._seen = as_json, dict[str, bytes]()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, fleet: Fleet) -> None:
        import msgspec

        for name, agent_status in fleet.agents.items():
            told = msgspec.json.encode(agent_status)
            if self._seen.get(name) == told:
                continue
            self._seen[name] = told
            words = f"{agent_status.name} {agent_status.state} {agent_status.task_id} {agent_status.last}".rstrip()
            click.echo(told.decode() if self._as_json else shown(words))


class _Table:
    """A live table of the fleet."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(auto_refresh=False)

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, fleet: Fleet) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table("AGENT", "STATE", "TASK", "DONE", "FAILED", "BLOCKED", "CRASHES", "COST", "LAST", box=None)
        for one in fleet.agents.values():
            counts = (str(one.verified), str(one.failed), str(one.blocked), str(one.crashes), f"${one.cost_usd:.4f}")
            cells = (one.name, one.state, one.title or one.task_id, *counts, one.last)
            table.add_row(*(Text(shown(cell), no_wrap=True, overflow="ellipsis") for cell in cells))
        self._live.update(table, refresh=True)
