"""The store that a command works on, and its topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from redkey.ledger.ports import Reader


class _Address(click.ParamType[Any]):
    """A data directory, or the URL of a database."""

    name = "store"

    def __init__(self, *, exists: bool, files: bool = False) -> None:
        self._path = click.Path(exists=exists, file_okay=files, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Leave a URL as it is; anything else is a path."""
        if isinstance(value, str) and "://" in value:
            return value
        return self._path.convert(value, param, ctx)


# A store that exists, one that may be created, and a store or a file.
STORE = _Address(exists=True)
STORE_OR_FILE = _Address(exists=True, files=True)
NEW_STORE = _Address(exists=False)


def shown_store(address: str | Path) -> str:
    """An address as it may be printed: without the password of a URL."""
    text = str(address)
    if "://" not in text:
        return text
    scheme, _, rest = text.partition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{host}"


def chosen_topic(reader: Reader, topic: str | None) -> str:
    """The topic that was asked for, or the only one there is; anything else is a wrong use of the command."""
    topics = reader.topics()
    if topic is None and len(topics) == 1:
        return topics[0]
    if topic is None:
        raise click.UsageError(f"choose one with --topic: {', '.join(topics[:20]) or 'there is none yet'}")
    if topic not in topics:
        raise click.UsageError(f"there is no topic {topic}; there are: {', '.join(topics[:20])}")
    return topic
