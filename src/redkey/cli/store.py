"""Data directories as commands open them: the store, its signing service, and one of its topics."""

from __future__ import annotations

import os

import click

from redkey.ledger.checkpoint import log_name
from redkey.ledger.ports import Reader
from redkey.services.log_facts import open_log
from redkey.services.signing import Signing
from redkey.stores.keys import SignerKeys
from redkey.stores.sqlite import SqliteStore
from redkey.stores.sqlite.copying import KEYS


def open_signing(store: SqliteStore) -> Signing:
    """The signing service of a data directory; the log gets its id and its first key when it has none."""
    log = open_log(store, os.urandom(32))
    return Signing(store, SignerKeys(store.directory / KEYS, log_name(log.log_id)))


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
