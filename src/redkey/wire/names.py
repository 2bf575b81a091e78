"""Names that people give: one role may be written `researcher`, `role_researcher` or `roles.researcher`, queues
likewise. Inside, and in every reply, there is one spelling.
"""

from __future__ import annotations

import re

ROLE_ID = re.compile(r"role_[a-zA-Z0-9][a-zA-Z0-9._-]{0,26}")
QUEUE_ID = re.compile(r"queue_[a-zA-Z0-9][a-zA-Z0-9._-]{0,25}")
AGENT_ID = re.compile(r"agt_[0-7][0-9A-HJKMNP-TV-Z]{25}")
SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def role_id(name: str) -> str:
    """The id of a role under any of its names; it may be one that no role can have."""
    return "role_" + name.removeprefix("roles.").removeprefix("role_")


def queue_id(name: str) -> str:
    """The id of a queue under any of its names; it may be one that no queue can have."""
    return "queue_" + name.removeprefix("queues.").removeprefix("queue_")
