"""`redkey status`: is the server there, and how does the workspace stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from redkey.cli.live import watch, watch_option
from redkey.cli.report import print_json
from redkey.cli.screen import print_facts, rich_table
from redkey.cli.session import daily

if TYPE_CHECKING:
    from redkey.client import RedKey

_PAGE = 500


@click.command()
@watch_option
@daily
def command(rk: RedKey, live: bool, as_json: bool) -> None:
    """Is the server there, and how does the workspace stand.

    Exit code 1: the server does not answer.
    """
    if live:
        watch(
            lambda: (rich_table(("", ""), [(name, str(value)) for name, value in _facts(rk)]), False), rk.events.follow
        )
    facts = _facts(rk)
    if as_json:
        print_json(dict(facts))
    else:
        print_facts(facts)


def _facts(rk: RedKey) -> list[tuple[str, str]]:
    ready = rk.server.ready().status
    usage, head = rk.usage.get().total, rk.checkpoints.latest()
    return [
        ("server", rk.settings.shown_url),
        ("state", ready),
        ("workspaces", ", ".join(one.workspace_id for one in rk.workspaces.list())),
        ("queues", _count(rk.queues.list(limit=_PAGE))),
        ("agents", _count(rk.agents.list(active=True, limit=_PAGE))),
        ("workflows", _count(rk.workflows.list(state="live", limit=_PAGE))),
        ("approvals", _count(rk.gates.list(limit=_PAGE))),
        ("messages", _count(rk.inbox.list(unread=True, limit=_PAGE))),
        ("events", f"{usage.events:,}"),
        ("claims", f"{usage.claims:,} won, {usage.misses:,} missed, {usage.rejected:,} rejected"),
        ("checkpoint", f"{head.size:,} records signed"),
    ]


def _count(pages: Any) -> str:
    """How many there are; beyond one page nobody counts."""
    page = pages.page()
    return f"{len(page.items)}{'+' if page.next is not None else ''}"
