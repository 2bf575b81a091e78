"""What a command does to the store beside its records, in the same unit: it stores the hash of a new key's secret,
deletes erased content, or removes a published draft. None of this is on the ledger, and replay does not need it.
"""

from __future__ import annotations

import msgspec

from redkey.commands.command import Command
from redkey.commands.decision import Refused, not_found
from redkey.commands.registry import CreateKey, EraseContent
from redkey.commands.workflows import PublishDefinition
from redkey.ledger.ports import Unit
from redkey.services import definitions
from redkey.services.answers import erase_answers
from redkey.services.keys import Kept, setting_name

_BESIDE = frozenset({CreateKey, EraseContent, PublishDefinition})


def check(unit: Unit, topic: str, command: Command) -> None:
    """Refuse a command before it is decided, if its side effects are not possible."""
    if type(command) not in _BESIDE:
        return
    if isinstance(command, EraseContent):
        found = unit.content_facts(topic, command.sha256)
        if found is None:
            raise not_found("content")
        if found.pinned:
            raise Refused(409, "content_pinned", "This content is structure: replay needs it, so it stays.")
    elif isinstance(command, PublishDefinition):
        definitions.publish_check(unit, topic, command.definition_id, command.revision)


def apply(unit: Unit, topic: str, command: Command) -> None:
    """Apply the side effects; the unit's commit makes them durable together with the records."""
    if isinstance(command, CreateKey) and command.secret_sha256:
        kept = Kept(topic, command.key_id, command.secret_sha256)
        name = setting_name(command.prefix.removeprefix("rk_"))
        unit.put_fact(topic, name, msgspec.json.encode(kept).decode())
    elif isinstance(command, EraseContent):
        unit.erase_content(topic, command.sha256)
        erase_answers(unit, topic)
    elif isinstance(command, PublishDefinition):
        definitions.drop_draft(unit, topic, command.definition_id)


def has_effect(command: Command) -> bool:
    """True for the few commands that have side effects."""
    return type(command) in _BESIDE
