"""`redkey status`: the status of the server and of the workspace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.live import watch, watch_option
from redkey.cli.report import print_json
from redkey.cli.screen import print_facts, rich_table, seconds_since, span
from redkey.cli.session import daily

if TYPE_CHECKING:
    from redkey.client import RedKey

_PAGE = 500
# Smaller clock differences do not matter.
_CLOCK_SECONDS = 60


@click.command()
@watch_option
@daily
def command(rk: RedKey, live: bool, as_json: bool) -> None:
    """Show the status of the server and of the workspace.

    Exit code 1: the server does not answer.
    """
    if live:
        watch(lambda: (rich_table(("", ""), _told(_figures(rk))), False), rk.events.follow)
    found = _figures(rk)
    if as_json:
        print_json(found)
    else:
        print_facts(_told(found))


def _figures(rk: RedKey) -> dict[str, Any]:
    usage, ready = rk.usage.get().total, rk.server.ready()
    clock = _clock(ready.time)
    return {
        "server": rk.settings.shown_url,
        "state": ready.status,
        "version": ready.version,
        "workspaces": [one.workspace_id for one in rk.workspaces.list(limit=_PAGE)],
        "queues": _count(rk.queues.list(limit=_PAGE)),
        "agents": _count(rk.agents.list(active=True, limit=_PAGE)),
        "workflows": _count(rk.workflows.list(state="live", limit=_PAGE)),
        "approvals": _count(rk.gates.list(limit=_PAGE)),
        "messages": _count(rk.inbox.list(unread=True, limit=_PAGE)),
        "events": usage.events,
        "claims": {"won": usage.claims, "missed": usage.misses, "rejected": usage.rejected},
        "signed": rk.checkpoints.latest().size,
        **clock,
    }


def _count(items: Iterable[Any]) -> int:
    """Count the items of a list, page by page."""
    return sum(1 for _ in items)


def _clock(moment: str) -> dict[str, str]:
    """Return a warning if this machine's clock and the server's differ, because displayed times would be wrong."""
    ahead = seconds_since(moment) if moment else 0.0
    if abs(ahead) < _CLOCK_SECONDS:
        return {}
    side = "ahead of" if ahead > 0 else "behind"
    return {"clock": f"this machine's clock is {span(abs(ahead))} {side} the server's; set the one that is wrong"}


def _told(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Print the same for people."""
    facts = []
    for name, value in found.items():
        if isinstance(value, dict):
            text = ", ".join(f"{count:,} {what}" for what, count in value.items())
        elif isinstance(value, int):
            text = f"{value:,}"
        else:
            text = value if isinstance(value, str) else ", ".join(value)
        facts.append((name, text))
    return facts
