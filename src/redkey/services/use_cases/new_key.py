"""New keys: requested ones, and those that come with a workspace or with the registration of an agent."""

from __future__ import annotations

from collections.abc import Sequence

from redkey.commands.registry import CreateKey
from redkey.services.caller import Caller, Pending
from redkey.services.keys import digest_of
from redkey.wire.events import KeyCreated, Ref


def new_key(caller: Caller, scopes: Sequence[str], agent_id: str = "", name: Ref | None = None) -> CreateKey:
    """Return the command that creates a key. Its secret follows from its id: a repeated request shows the same one."""
    key_id = "key_" + caller.means.ids.ulid()
    text = caller.means.keys.text(key_id)
    return CreateKey(key_id, text.rpartition("_")[0], tuple(scopes), agent_id, name, digest_of(text))


async def issue_agent_key(caller: Caller, agent_id: str) -> str:
    """Create a key that acts as one agent; the same one if the request is repeated."""
    text = caller.means.keys.text
    command = new_key(caller, ("agent",), agent_id)
    pending = Pending(command, lambda outcome, _: text(outcome.payload(KeyCreated).key_id), part="key")
    return await caller.settled(pending)
