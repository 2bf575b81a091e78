"""What a first task needs and a fresh workspace lacks: the queue it goes to and the roles it names."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from redkey.errors import Conflict, NotFound

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.client.calls.queues import Queues
    from redkey.client.calls.roles import Roles
    from redkey.client.operation import Sync


def ensure_queue(rk: RedKey, name: str) -> None:
    """Create a queue that does not exist yet, and say so."""
    _ensure(rk.queues, "queue", name)


def ensure_roles(rk: RedKey, names: Iterable[str]) -> None:
    """Create the roles that do not exist yet, and say so."""
    for name in names:
        _ensure(rk.roles, "role", name)


def _ensure(resource: Queues[Sync] | Roles[Sync], what: str, name: str) -> None:
    try:
        resource.get(name)
    except NotFound:
        # Another process may create it at the same moment.
        with suppress(Conflict):
            resource.create(name, id=name)
            click.echo(f"made the {what} {name}", err=True)
