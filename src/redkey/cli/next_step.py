"""Next steps: a command ready to be pasted, after `next:`, and advice in words, after `hint:`.

Every `next:` line of the command line is printed here. A command with a part that only the reader knows is not a next
step but a hint; the next step is then the command that shows the missing part.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from redkey.cli.report import shown

if TYPE_CHECKING:
    from redkey.shapes.problem import NextStep

# The names under which a click context stores the chosen server and the other arguments.
_SERVER, _GIVEN, _ORIGINS = "redkey.server", "redkey.given", "redkey.origins"
# Commands that work on this machine: they take no --url, and some not even --data.
_LOCAL = ("serve", "demo", "plan", "config", "card", "mcp")


class Step(NamedTuple):
    """What to do next."""

    command: str = ""
    hint: str = ""


# By the API's code of the step. Names in braces are fields of the step.
_STEPS = {
    "activate_agent": Step("redkey agent activate {agent_id}"),
    "approve_or_reject": Step("redkey gate show {detail}", "approve or reject it"),
    "ask_for_activation": Step("redkey agent activate {agent_id}", "this needs a key with the scope admin"),
    "ask_for_a_higher_cap": Step("redkey workspace policy", "an admin raises the cap with --cost-cap"),
    "ask_for_another_lease": Step(hint="ask for a lease of 5 seconds to 24 hours"),
    "ask_for_role": Step("redkey role grant {role_id} {agent_id}", "this needs a key with the scope admin"),
    "claim": Step("redkey claim take {task_id} --agent {agent_id}"),
    "complete_dependency": Step("redkey task explain {task_id}"),
    "complete_other_tasks": Step("redkey workflow show {detail}"),
    "finish_a_claim": Step("redkey agent history {agent_id}", "complete, fail or release a claim that the agent holds"),
    "grant_role": Step("redkey agent register {role_id}-1 --role {role_id}", "or grant the role to an agent you have"),
    "none": Step(),
    "poll_available_tasks": Step("redkey claim next --queue {queue_id} --agent {agent_id}"),
    "register_agent": Step("redkey agent list", "register an agent that can do {detail}"),
    "resume_queue": Step("redkey queue resume {queue_id}"),
    "resume_workflow": Step("redkey workflow resume {detail}"),
    "retry": Step("redkey task retry {task_id}"),
    "start_agent": Step("redkey agent show {agent_id}", "start its process again"),
    "unblock": Step("redkey task show {task_id}", "answer it with redkey task unblock and --answer"),
    "wait": Step("redkey claim next --queue {queue_id} --agent {agent_id} --wait 60"),
    "wait_or_add_agents": Step("redkey queue show {queue_id}", "wait, or start more agents"),
}
# The replacement for a command with an unknown field.
_INSTEAD = {
    "ask_for_role": "redkey role list",
    "finish_a_claim": "redkey agent list",
    "poll_available_tasks": "redkey task list --queue {queue_id}",
    "wait": "redkey agent list",
}


def step_for(step: NextStep, agent_id: str = "") -> Step:
    """Return the next step that the API names; an unknown code of a newer server becomes a hint.

    `agent_id` is the agent of a claim, if the API leaves it out.
    """
    known = _STEPS.get(step.action)
    if known is None:
        return Step(hint=step.action.replace("_", " "))
    fields = {name: getattr(step, name) for name in ("queue_id", "role_id", "agent_id", "task_id", "detail")}
    fields["agent_id"] = fields["agent_id"] or agent_id
    for name, prefix in (("queue_id", "queue_"), ("role_id", "role_")):
        fields[name] = fields[name].removeprefix(prefix)
    return Step(
        filled(known.command, fields) or filled(_INSTEAD.get(step.action, ""), fields), known.hint.format(**fields)
    )


def filled(command: str, fields: Mapping[str, Any]) -> str:
    """Return the command with its fields as shell words; empty if one of them is unknown."""
    try:
        return command.format_map(_Words(fields))
    except KeyError:
        return ""


class _Words(dict[str, str]):
    """Quote fields as shell words; an empty one counts as missing."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__({name: shlex.quote(str(value)) for name, value in fields.items() if value})


def remember(given: Mapping[str, Any], *, url: str | None, data: Path | None) -> None:
    """Store the arguments of this command, so that next steps go to the same server and name the same objects."""
    meta = click.get_current_context().meta
    meta[_SERVER] = {"url": url, "data": data}
    meta[_GIVEN] = dict(given)


def remember_origins(settings: Mapping[str, tuple[Any, str]]) -> None:
    """Store settings and their sources, for errors about one of them."""
    click.get_current_context().meta[_ORIGINS] = dict(settings)


def origin_of(setting: str) -> str:
    """Return a setting, its value and its source in words; empty if the command has no such setting."""
    context = click.get_current_context(silent=True)
    value, source = context.meta.get(_ORIGINS, {}).get(setting, (None, "")) if context is not None else (None, "")
    return f"{setting}: {value} (from {source})" if value is not None else ""


def given() -> Mapping[str, Any]:
    """Return the options and arguments of the running command."""
    context = click.get_current_context(silent=True)
    found: Mapping[str, Any] = context.meta.get(_GIVEN, {}) if context is not None else {}
    return found


def pasted(command: str) -> str:
    """Return a command as this shell can run it: with the program's path, and for the chosen server."""
    if not command.startswith(("redkey ", "cd ", "env ")):
        return command
    context = click.get_current_context(silent=True)
    server = context.meta.get(_SERVER, {}) if context is not None else {}
    verb = command.split()[1]
    for name in ("url", "data"):
        takes = verb not in _LOCAL or (verb == "serve" and name == "data")
        if server.get(name) and takes and f"--{name} " not in command:
            command += f" --{name} {shlex.quote(str(server[name]))}"
    return re.sub(r"(^|&& |^env -u \w+ )redkey(?= )", lambda found: found[1] + own_command(), command)


def print_step(step: Step, *, indent: str = "", err: bool = True) -> None:
    """Print the next step, dim. A hint is wrapped; a command stays on one line, so that it can be pasted."""
    from redkey.cli.screen import wrapped

    for line in step_lines(step):
        text = f"{indent}{shown(line)}"
        if line.startswith("hint: "):
            text = wrapped(text, len(indent) + 2, sys.stderr if err else sys.stdout)
        click.echo(click.style(text, dim=True), err=err)


def step_lines(step: Step) -> list[str]:
    """Return the lines of a next step: its hint, and its command."""
    hint = [f"hint: {step.hint}"] if step.hint else []
    return [*hint, f"next: {pasted(step.command)}"] if step.command else hint


def own_command() -> str:
    """Return how this shell calls this program: `redkey`, or its path if the name is not on the PATH."""
    program = Path(sys.argv[0])
    if program.name != "redkey" or not program.is_file():
        return "redkey"
    found = shutil.which("redkey")
    if found is not None and Path(found).resolve() == program.resolve():
        return "redkey"
    try:
        return str(program.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(program.absolute())
