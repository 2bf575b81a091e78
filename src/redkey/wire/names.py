"""Names that people give: one role may be written `researcher`, `role_researcher` or `roles.researcher`, queues
likewise. The ledger and every reply use one spelling.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256

# How many characters follow `role_` and `queue_`.
ROLE_NAME_LIMIT, QUEUE_NAME_LIMIT = 27, 26
ROLE_ID = re.compile(r"role_[a-zA-Z0-9][a-zA-Z0-9._-]{0,26}")
QUEUE_ID = re.compile(r"queue_[a-zA-Z0-9][a-zA-Z0-9._-]{0,25}")
AGENT_ID = re.compile(r"agt_[0-7][0-9A-HJKMNP-TV-Z]{25}")
SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def id_for(name: str, made: str, longest: int) -> str:
    """The last part of an id for a name of any length and script: `made`, the name's slug, where it fits; else as much
    of it as fits and a hash of the name, so that the same name always gets the same id."""
    if made and len(made) <= longest:
        return made
    mark = sha256(unicodedata.normalize("NFC", name).encode()).hexdigest()[:8]
    kept = made[: longest - len(mark) - 1].rstrip("._-")
    return f"{kept}-{mark}" if kept else mark


def role_id(name: str) -> str:
    """Return the id of a role for any of its names; it may be an invalid one."""
    return "role_" + name.removeprefix("roles.").removeprefix("role_")


def queue_id(name: str) -> str:
    """Return the id of a queue for any of its names; it may be an invalid one."""
    return "queue_" + name.removeprefix("queues.").removeprefix("queue_")
