"""Print a refusal for people: one sentence with its code, what exactly is wrong, and the next step."""

from __future__ import annotations

import click

from redkey.cli.report import shown
from redkey.errors import ApiError, RedKeyError, Unauthorized, Unreachable

# The next step for errors whose own text cannot know it.
_NEXT = {
    Unreachable: "is the server running? start it with: redkey serve",
    Unauthorized: "set REDKEY_API_KEY to a valid key, or run this where redkey serve keeps its data directory",
}
_BY_CODE = {
    "queue_not_found": "see the queues with redkey queue list, or create one with redkey queue create NAME",
    "role_not_found": "see the roles with redkey role list, or create one with redkey role create NAME",
    "workflow_not_found": "see the runs with redkey workflow list --all",
    "gate_not_found": "see the open gates with redkey gate list",
    "event_not_found": "see the events with redkey events tail",
    **{f"{what}_not_found": f"see the {what}s with redkey {what} list" for what in ("agent", "task", "key")},
}


def print_refusal(refused: RedKeyError) -> None:
    """Print on standard error. Messages may quote text of others, so control characters are escaped."""
    sentence = refused.detail if isinstance(refused, ApiError) else refused.message
    click.echo(f"redkey: {shown(sentence)} [{refused.code}]", err=True)
    if isinstance(refused, ApiError) and refused.origin:
        click.echo(f"  server: {shown(refused.origin)}", err=True)
    for one in refused.errors if isinstance(refused, ApiError) else ():
        if one.pointer:
            click.echo(f"  {shown(one.pointer)}: {shown(one.message)} [{one.code}]", err=True)
    following = next_step(refused)
    if following:
        click.echo(click.style(f"next: {shown(following)}", dim=True), err=True)


def next_step(refused: RedKeyError) -> str:
    """Return what to do about the refusal; nothing if its message says it already."""
    if refused.code in _BY_CODE:
        return _BY_CODE[refused.code]
    for kind, sentence in _NEXT.items():
        if isinstance(refused, kind):
            return sentence
    return refused.advice if isinstance(refused, ApiError) else ""
