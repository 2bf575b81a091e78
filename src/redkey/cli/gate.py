"""`redkey gate`: approve what was done, or send it back."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.declared import add_declared
from redkey.cli.live import watch, watch_option
from redkey.cli.look import Look
from redkey.cli.screen import ago, print_facts, print_item, print_list, rich_table, styled
from redkey.cli.session import daily, ids_option, limit_option, slugs_of

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.gates import Gate, GateDecided

_TITLES = ("GATE", "STATE", "TASK", "OPENED", "TITLE")
_gate = click.argument("gate_id", metavar="GATE")


@click.group()
def command() -> None:
    """List what waits for approval, approve it, or send it back. The worker of a task never decides on it."""


@command.command("list")
@click.option("--closed", is_flag=True, help="Those that are decided, in place of those that wait.")
@limit_option
@watch_option
@ids_option
@daily
def list_gates(rk: RedKey, closed: bool, limit: int, live: bool, ids_only: bool, as_json: bool) -> None:
    """List what waits for approval, the oldest first."""
    state: Any = "closed" if closed else "open"
    if live:
        watch(
            lambda: (rich_table(_TITLES, [_row(one) for one in islice(rk.gates.list(state=state), limit)]), False),
            rk.events.follow,
        )
    found = islice(rk.gates.list(state=state), limit)
    print_list(found, _TITLES, _row, as_json=as_json, ids_only=ids_only, empty="nothing waits for approval")


def _row(gate: Gate) -> tuple[str, ...]:
    return gate.gate_id, gate.state, gate.task_id, ago(gate.opened_at), gate.title


@command.command()
@_gate
@daily
def show(rk: RedKey, gate_id: str, as_json: bool) -> None:
    """Show one gate and the work to approve."""
    found = rk.gates.get(gate_id)
    if as_json:
        print_item(found)
        return
    task, slugs = rk.tasks.get(found.task_id), slugs_of(rk)
    print_facts(
        [
            ("gate", found.gate_id),
            ("state", found.state),
            ("title", found.title),
            ("task", found.task_id),
            ("workflow", found.workflow_id),
            ("worker", slugs.get(found.agent_id, found.agent_id) or found.worker),
            ("summary", task.summary),
            ("artifacts", [f"{one.name} ({one.bytes:,} bytes, {one.sha256})" for one in task.artifacts]),
            ("approvers", found.approvers or ("admins",)),
            ("opened", ago(found.opened_at)),
            ("deadline", ago(found.deadline_at)),
            ("decided", ago(found.closed_at)),
            ("by", slugs.get(found.closed_by, found.closed_by)),
            ("note", found.note),
        ]
    )


def _told(decided: GateDecided) -> str:
    follows = {None: "", True: "; another attempt follows", False: "; no attempts are left"}[decided.retry]
    return f"{decided.gate_id} is {styled(decided.state)}{follows}"


add_declared(command, "gate", {"approve": Look(told=_told), "reject": Look(told=_told)})
