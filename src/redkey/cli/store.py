"""The store and the topic that a command works on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from redkey.ledger.ports import Reader


class _Address(click.ParamType[Any]):
    """The click type of a data directory or the URL of a database."""

    name = "store"

    def __init__(self, *, exists: bool, files: bool = False) -> None:
        self._path = click.Path(exists=exists, file_okay=files, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Leave a URL as it is; anything else is a path."""
        if isinstance(value, str) and "://" in value:
            return value
        return self._path.convert(value, param, ctx)


# A store that exists, a store that may be created, and a store or a file.
STORE = _Address(exists=True)
STORE_OR_FILE = _Address(exists=True, files=True)
NEW_STORE = _Address(exists=False)


def shown_store(address: str | Path) -> str:
    """Return an address for output: a URL without its password."""
    text = str(address)
    if "://" not in text:
        return text
    scheme, _, rest = text.partition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{host}"


def chosen_topic(reader: Reader, topic: str | None) -> str:
    """Return the chosen topic, or the only one; anything else is a usage error."""
    topics = reader.topics()
    if topic is None and len(topics) == 1:
        return topics[0]
    if topic is None:
        raise click.UsageError(f"choose one with --topic: {', '.join(topics[:20]) or 'there is none yet'}")
    if topic not in topics:
        raise click.UsageError(f"there is no topic {topic}; there are: {', '.join(topics[:20])}")
    return topic
