"""What a first task needs and a fresh workspace lacks: the queue it goes to and the roles it names."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from redkey.errors import Conflict, NotFound

if TYPE_CHECKING:
    from redkey.client import RedKey


def ensure_queue(rk: RedKey, name: str) -> None:
    """Make a queue that is not there yet, and say so."""
    try:
        rk.queues.get(name)
    except NotFound:
        # Somebody else may make it in the same moment.
        with suppress(Conflict):
            rk.queues.create(name, id=name)
            click.echo(f"made the queue {name}", err=True)


def ensure_roles(rk: RedKey, names: Iterable[str]) -> None:
    """Make the roles that are not there yet, and say so."""
    for name in names:
        try:
            rk.roles.get(name)
        except NotFound:
            with suppress(Conflict):
                rk.roles.create(name, id=name)
                click.echo(f"made the role {name}", err=True)
