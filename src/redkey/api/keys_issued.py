"""Keys that come with something else: the key of an agent, issued with its registration."""

from __future__ import annotations

from redkey.api.call import Call
from redkey.commands.registry import CreateKey
from redkey.services.keys import digest_of


async def issue_agent_key(call: Call, agent_id: str) -> str:
    """A key that acts as one agent; the same one when the request is repeated."""
    keys = call.services.keys
    key_id = "key_" + call.services.ids.ulid()
    text = keys.text(key_id)
    prefix = text.rpartition("_")[0]
    command = CreateKey(key_id, prefix, ("agent",), agent_id, secret_sha256=digest_of(text))
    outcome = await call.submit(command, part="key")
    recorded: str = outcome.records[0].wire["payload"]["key_id"]
    return keys.text(recorded)
