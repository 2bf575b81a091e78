"""What is refused, for people: one sentence with its code, what exactly is wrong, and the next step."""

from __future__ import annotations

import click

from redkey.cli.report import shown
from redkey.errors import ApiError, RedKeyError, Unauthorized, Unreachable

# What helps where the error itself, or the server, cannot know it.
_NEXT = {
    Unreachable: "is the server running? start it with: redkey serve",
    Unauthorized: "set REDKEY_API_KEY to a valid key, or run this where redkey serve keeps its data directory",
}
_BY_CODE = {
    "queue_not_found": "see the queues with redkey queue list, or make one with redkey queue create NAME",
    "role_not_found": "see the roles with redkey role list, or make one with redkey role create NAME",
    "agent_not_found": "see the agents with redkey agent list",
    "task_not_found": "see the tasks with redkey task list",
    "workflow_not_found": "see the runs with redkey workflow list --all",
    "gate_not_found": "see what waits with redkey gate list",
    "key_not_found": "see the keys with redkey key list",
    "event_not_found": "see the events with redkey events tail",
}


def print_refusal(refused: RedKeyError) -> None:
    """On standard error. Messages may quote what strangers wrote; a terminal must not obey it."""
    sentence = refused.detail if isinstance(refused, ApiError) else refused.message
    click.echo(f"redkey: {shown(sentence)} [{refused.code}]", err=True)
    for one in refused.errors if isinstance(refused, ApiError) else ():
        if one.pointer:
            click.echo(f"  {shown(one.pointer)}: {shown(one.message)} [{one.code}]", err=True)
    following = next_step(refused)
    if following:
        click.echo(click.style(f"next: {shown(following)}", dim=True), err=True)


def next_step(refused: RedKeyError) -> str:
    """What to do about it; nothing when the message says all there is to say."""
    if refused.code in _BY_CODE:
        return _BY_CODE[refused.code]
    for kind, sentence in _NEXT.items():
        if isinstance(refused, kind):
            return sentence
    return refused.advice if isinstance(refused, ApiError) else ""
