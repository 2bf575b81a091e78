"""Create what a first task needs in a new workspace: its queue and its roles.

Nothing is created before the server has read the request and only misses these, so a typo elsewhere has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import click

from redkey.errors import Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.client.calls.queues import Queues
    from redkey.client.calls.roles import Roles
    from redkey.client.operation import Sync

T = TypeVar("T")
_MISSING = ("queue_not_found", "role_not_found", "unknown_role")


def with_missing(rk: RedKey, act: Callable[[], T], *, queue: str | None = None, roles: Iterable[str] = ()) -> T:
    """Run an action; if its queue or roles do not exist yet, create them, print that, and run it again."""
    try:
        return act()
    except (NotFound, Invalid) as refused:
        if refused.code not in _MISSING:
            raise
    if queue is not None:
        _ensure(rk.queues, "queue", queue)
    for role in roles:
        _ensure(rk.roles, "role", role)
    return act()


def _ensure(resource: Queues[Sync] | Roles[Sync], what: str, name: str) -> None:
    try:
        resource.get(name)
    except NotFound:
        # Another process may create it at the same moment.
        with suppress(Conflict):
            resource.create(name, id=name)
            click.echo(f"created the {what} {name}", err=True)
