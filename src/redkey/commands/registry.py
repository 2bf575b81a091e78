"""Commands that set up a workspace: workspace, keys, agents, roles, queues, inboxes, credits and content.

`decide_agents` decides those about agents and roles, `decide_workspace` the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from redkey.wire.events import (
    Ref,
)

# Settings of a queue by name; a setting that is not named keeps its value or its default.
QueueChoices = Mapping[str, int | str | bool]


@final
class CreateWorkspace(msgspec.Struct, frozen=True):
    """Create the workspace of a new topic."""

    workspace_id: str
    name_ref: Ref | None = None
    # The initial policy.
    self_approval: bool = False


# How many digits of a key's SHA-256 are on the ledger: too many to find another key for, and few enough for a wire.
KEY_HASH_DIGITS = 32


@final
class CreateKey(msgspec.Struct, frozen=True):
    """Create an API key; with the scope agent, `agent_id` names its agent."""

    key_id: str
    prefix: str
    scopes: tuple[str, ...]
    agent_id: str = ""
    name_ref: Ref | None = None
    # Hash of the whole key. The store checks keys by it; its first half is on the ledger as proof.
    secret_sha256: str = ""
    # True for a person who logs in: the secret of the key is never shown.
    person: bool = False


@final
class RevokeKey(msgspec.Struct, frozen=True):
    """Revoke an API key."""

    key_id: str


@final
class RegisterAgent(msgspec.Struct, frozen=True):
    """Register an agent by its card."""

    agent_id: str
    slug: str
    card_ref: Ref
    capabilities: tuple[str, ...] = ()
    verification: str = "unverified"
    # True if the caller chose the slug. One that was derived from a name may be changed when it is taken.
    slug_given: bool = True


@final
class UpdateAgent(msgspec.Struct, frozen=True):
    """Change an agent; fields that are None or empty stay."""

    agent_id: str
    slug: str = ""
    card_ref: Ref | None = None
    capabilities: tuple[str, ...] | None = None
    verification: str = ""
    active: bool | None = None


@final
class DeactivateAgent(msgspec.Struct, frozen=True):
    """Deactivate an agent: it claims nothing more."""

    agent_id: str


@final
class HeartbeatAgent(msgspec.Struct, frozen=True):
    """Report that an agent is alive, how much work it can take, and whether it pauses."""

    agent_id: str
    capacity: int | None = None
    in_use: int | None = None
    # Why it pauses; `none` ends a pause, None changes nothing.
    pause: str | None = None
    pause_seconds: int = 0
    # The account at its model's provider; empty changes nothing.
    account: str = ""


@final
class CreateRole(msgspec.Struct, frozen=True):
    """Create a role."""

    role_id: str
    role_ref: Ref | None = None
    capabilities: tuple[str, ...] = ()


@final
class UpdateRole(msgspec.Struct, frozen=True):
    """Change the name of a role or the capabilities of its holders; fields that are None stay."""

    role_id: str
    role_ref: Ref | None = None
    capabilities: tuple[str, ...] | None = None


@final
class RemoveRole(msgspec.Struct, frozen=True):
    """Take a role from all its holders and remove it."""

    role_id: str


@final
class GrantRole(msgspec.Struct, frozen=True):
    """Give a role to an agent."""

    role_id: str
    agent_id: str


@final
class RevokeRole(msgspec.Struct, frozen=True):
    """Take a role from an agent."""

    role_id: str
    agent_id: str


@final
class CreateQueue(msgspec.Struct, frozen=True):
    """Create a queue."""

    queue_id: str
    settings: QueueChoices
    name_ref: Ref | None = None


@final
class UpdateQueue(msgspec.Struct, frozen=True):
    """Change the settings or the name of a queue."""

    queue_id: str
    settings: QueueChoices
    name_ref: Ref | None = None


@final
class SendMessage(msgspec.Struct, frozen=True):
    """Send a message to an inbox: an agent's, a role's or the humans'."""

    message_id: str
    to: str
    priority: int
    message_type: str
    body_ref: Ref
    ref_task_id: str = ""
    action_required: bool = False
    # The agent that sends it, if the actor acts for an agent.
    agent_id: str = ""


@final
class ReadMessage(msgspec.Struct, frozen=True):
    """Mark a message of an inbox as read."""

    message_id: str


@final
class GrantCredits(msgspec.Struct, frozen=True):
    """Add credits to the workspace."""

    amount: int
    unit: str = "credit"


@final
class PriceCredits(msgspec.Struct, frozen=True):
    """Set what each event type costs, in credits."""

    version: int
    prices_ref: Ref


@final
class EraseContent(msgspec.Struct, frozen=True):
    """Erase a body from the content store; its hash stays on the ledger."""

    sha256: str
