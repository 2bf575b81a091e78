"""`redkey inbox`: messages to the humans, to agents, and to the holders of a role."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.declared import add_declared
from redkey.cli.look import Look
from redkey.cli.screen import ago, print_item, print_list, tell
from redkey.cli.session import daily, ids_option, limit_option, recording

if TYPE_CHECKING:
    from redkey.client import RedKey


@click.group()
def command() -> None:
    """Read and send messages. Humans get messages about blocks and approvals here."""


@command.command("list")
@click.option("--to", metavar="AGENT", help="The messages of this agent [those to the humans].")
@click.option("--all", "read_too", is_flag=True, help="Include messages that were read.")
@limit_option
@ids_option
@daily
def list_messages(rk: RedKey, to: str | None, read_too: bool, limit: int, ids_only: bool, as_json: bool) -> None:
    """List unread messages, by priority, then by age."""
    print_list(
        islice(rk.inbox.list(to=to, unread=None if read_too else True), limit),
        ("MESSAGE", "PRIORITY", "TYPE", "SENT", "TASK", "SUBJECT"),
        lambda one: (
            one.message_id,
            f"{one.priority}{' !' if one.action_required else ''}",
            one.message_type,
            ago(one.sent_at),
            one.ref_task_id,
            one.subject + (f": {one.body}" if one.body else ""),
        ),
        as_json=as_json,
        ids_only=ids_only,
        empty="no messages",
    )


@command.command()
@click.option("--to", required=True, metavar="WHO", help="An agent (id or slug), a role (role_...), or human.")
@click.option("--subject", required=True, help="The subject.")
@click.option("--body", help="The message.")
@click.option("--priority", type=click.IntRange(1, 3), default=3, show_default=True, help="1 is the most urgent.")
@click.option("--task", "ref_task_id", metavar="TASK", help="The task that it is about.")
@click.option("--question", is_flag=True, help="The message needs an answer.")
@recording
def send(rk: RedKey, to: str, subject: str, question: bool, ids_only: bool, as_json: bool, **message: Any) -> None:
    """Send a message."""
    kind: Any = "question" if question else "info"
    sent = rk.inbox.send(to, subject, message_type=kind, action_required=question, **message)
    if as_json:
        print_item(sent)
    else:
        for one in sent.messages:
            tell(one.message_id if ids_only else f"{one.message_id} to {one.to}")


add_declared(command, "inbox", {"read": Look(told="{message_id} is read")})
