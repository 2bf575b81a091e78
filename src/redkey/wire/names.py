"""Names that people give: one role may be written `researcher`, `role_researcher` or `roles.researcher`, queues
likewise. The ledger and every reply use one spelling.
"""

from __future__ import annotations

import re

ROLE_ID = re.compile(r"role_[a-zA-Z0-9][a-zA-Z0-9._-]{0,26}")
QUEUE_ID = re.compile(r"queue_[a-zA-Z0-9][a-zA-Z0-9._-]{0,25}")
AGENT_ID = re.compile(r"agt_[0-7][0-9A-HJKMNP-TV-Z]{25}")
SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def role_id(name: str) -> str:
    """Return the id of a role for any of its names; it may be an invalid one."""
    return "role_" + name.removeprefix("roles.").removeprefix("role_")


def queue_id(name: str) -> str:
    """Return the id of a queue for any of its names; it may be an invalid one."""
    return "queue_" + name.removeprefix("queues.").removeprefix("queue_")
