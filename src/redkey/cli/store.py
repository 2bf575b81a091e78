"""The topic of a store that a command works on."""

from __future__ import annotations

import click

from redkey.ledger.ports import Reader


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
