"""Print an error for people: one sentence with its code, what exactly is wrong, and the next step."""

from __future__ import annotations

import re
import shlex
import sys

import click

from redkey.cli.next_step import Step, filled, given, origin_of, print_step
from redkey.cli.report import shown
from redkey.cli.screen import wrapped
from redkey.errors import ApiError, RedKeyError, StoreError, Unauthorized, Unreachable

# The next step for errors whose text cannot contain it. Names in braces are arguments of the command.
_BY_CODE = {
    "agent_not_found": Step("redkey agent list"),
    "artifact_not_found": Step("redkey artifact list {task_id}"),
    "already_terminal": Step("redkey task show {task_id}", "it has ended and does not change any more"),
    "body_too_large": Step(hint="--input takes at most 1 MiB; hand larger things over as artifacts"),
    "claim_not_found": Step("redkey task list --state claimed", "a claim is seen by its own agent and by admins"),
    "definition_not_found": Step(hint="name a file with a plan, or the id of a published definition (def_...)"),
    "event_not_found": Step("redkey events tail"),
    "gate_not_found": Step("redkey gate list"),
    "insufficient_scope": Step(
        hint="use a key with this scope in REDKEY_API_KEY: an admin creates one with redkey key create --scope"
    ),
    "key_not_found": Step("redkey key list"),
    "lease_lost": Step("redkey task list --state claimed", "its lease ended and another agent has the task"),
    "message_not_found": Step("redkey inbox list --all"),
    "missing_artifact": Step(hint="hand it over with --artifact, or with --output and a field of this name"),
    "not_blocked": Step("redkey task explain {task_id}"),
    "own_gate": Step("redkey gate show {gate_id}", "another person or agent has to approve it"),
    "plan_invalid": Step("redkey plan validate {plan}"),
    "queue_not_found": Step("redkey queue list", "a queue is created by redkey queue create"),
    "queue_exists": Step("redkey queue list"),
    "role_exists": Step("redkey role list"),
    "role_not_found": Step("redkey role list", "a role is created by redkey role create"),
    "task_not_found": Step("redkey task list"),
    "workflow_not_found": Step("redkey workflow list --all"),
    "workspace_not_found": Step("redkey workspace list"),
    "contract_unknown": Step("redkey contract list"),
    "cannot_listen": Step("redkey serve --port 0", "--port 0 takes a free port"),
    "newer_format": Step(hint="install the RedKey that wrote it, or a newer one; this one changed nothing"),
    "store_failed": Step(hint="check that the directory can be written, or name another one with --data"),
    "target_exists": Step(hint="name a place where nothing is yet; a server that uses this one is not disturbed"),
    "writer_busy": Step(
        hint="another process writes to this data directory and does not finish, perhaps because it was stopped; let "
        "it go on, or end it (`fuser redkey.lock` in the directory names it)"
    ),
    "store_full": Step(hint="free space on its disk, or name another directory with --data"),
    "no_server": Step("redkey serve", "or name a server with REDKEY_URL and REDKEY_API_KEY"),
}


def print_refusal(refused: RedKeyError) -> None:
    """Print on standard error. Messages may quote foreign text, so control characters are escaped."""
    sentence = refused.detail if isinstance(refused, ApiError) else refused.message
    click.echo(wrapped(f"redkey: {shown(sentence)} [{refused.code}]", 2, sys.stderr), err=True)
    if isinstance(refused, ApiError) and refused.origin:
        click.echo(wrapped(f"  server: {shown(refused.origin)}", 4, sys.stderr), err=True)
    about = "data" if isinstance(refused, StoreError) else "port" if refused.code == "cannot_listen" else ""
    if origin := origin_of(about):
        click.echo(f"  {shown(origin)}", err=True)
    for one in refused.errors if isinstance(refused, ApiError) else ():
        if one.pointer and one.message.rstrip(".").casefold() == sentence.rstrip(".").casefold():
            click.echo(f"  at {shown(one.pointer)} [{one.code}]", err=True)
        elif one.pointer:
            click.echo(wrapped(f"  {shown(one.pointer)}: {shown(one.message)} [{one.code}]", 4, sys.stderr), err=True)
    print_step(next_step(refused))


def next_step(refused: RedKeyError) -> Step:
    """Return what to do about the error; nothing if its message says it already."""
    if refused.code.startswith("http_") or refused.code == "path_not_found":
        return Step("redkey --version", "this is no RedKey server, or one of another version than this command")
    if isinstance(refused, Unauthorized):
        return _about_key(refused.origin)
    if refused.code == "no_credentials":
        # The message names the directory.
        return Step("".join(re.findall(r"`(redkey key recover [^`]*)`", refused.message)))
    if isinstance(refused, Unreachable):
        return _about_server(refused.message)
    if refused.code in ("setting_unknown", "config_refused"):
        return _about_setting(refused.message)
    known = _BY_CODE.get(refused.code)
    if known is not None:
        return Step(filled(known.command, given()), known.hint)
    # Advice about the fields of a request is for programs; people see the fields above.
    advice = refused.advice if isinstance(refused, ApiError) else ""
    return Step(hint="" if "`errors`" in advice else advice)


def _about_setting(message: str) -> Step:
    """Return the command that lists the settings without the file or the variable that has the wrong one."""
    variable = re.match(r"REDKEY_\w+", message)
    without = f"env -u {variable[0]} redkey config show" if variable else "redkey config show --config /dev/null"
    return Step(without, "correct the setting or take it out; this lists all of them")


def _about_key(origin: str) -> Step:
    """Return the step for a key that the server does not know, depending on the source of the key."""
    if "which overrides" in origin:
        return Step("unset REDKEY_API_KEY", "REDKEY_API_KEY overrides the key that the data directory has")
    stored = re.search(r"key from (\S+)/credentials\.json", origin)
    if stored is not None:
        return Step(f"redkey key recover {shlex.quote(stored[1])}", "this makes a new key, on the server's machine")
    return Step(hint="set REDKEY_API_KEY to a valid key, or unset it where the server has its data directory")


def _about_server(message: str) -> Step:
    """Return the step for a server that does not answer, depending on the source of its address."""
    stored = re.search(r"\(from (\S+)/credentials\.json\)", message)
    if stored is not None:
        return Step(f"redkey serve --data {shlex.quote(stored[1])}", "is the server running?")
    local = re.search(r"http://(?:127\.0\.0\.1|localhost|\[::1\]):(\d+) ", message)
    if local is not None:
        return Step(f"redkey serve --port {local[1]}", "is the server running?")
    return Step(hint="is the server running, and is its address right?")
