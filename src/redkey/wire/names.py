"""Ids of roles and queues from the names that people give them.

A role may be written `researcher`, `role_researcher` or `roles.researcher`, and queues likewise. The ledger and every
reply use one spelling.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256

# The maximum number of characters after `role_` and `queue_`.
ROLE_NAME_LIMIT, QUEUE_NAME_LIMIT = 27, 26
ROLE_ID = re.compile(r"role_[a-zA-Z0-9][a-zA-Z0-9._-]{0,26}")
QUEUE_ID = re.compile(r"queue_[a-zA-Z0-9][a-zA-Z0-9._-]{0,25}")
AGENT_ID = re.compile(r"agt_[0-7][0-9A-HJKMNP-TV-Z]{25}")
SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


def id_for(name: str, slug: str, longest: int) -> str:
    """Return the last part of an id for a name of any length and script, always the same for the same name.

    It is `slug`, the slug of the name, if that is short enough. Otherwise the slug is cut and a hash of the name is
    appended.
    """
    if slug and len(slug) <= longest:
        return slug
    digest = sha256(unicodedata.normalize("NFC", name).encode()).hexdigest()[:8]
    kept = slug[: longest - len(digest) - 1].rstrip("._-")
    return f"{kept}-{digest}" if kept else digest


def role_id(name: str) -> str:
    """Return the id of a role for any of its names; the result may be invalid."""
    return "role_" + name.removeprefix("roles.").removeprefix("role_")


def queue_id(name: str) -> str:
    """Return the id of a queue for any of its names; the result may be invalid."""
    return "queue_" + name.removeprefix("queues.").removeprefix("queue_")
