"""Old names of what `redkey.shapes` and `redkey.services.use_cases` hold; families that have moved do not use it."""

from redkey.commands.decision import wrong
from redkey.services.use_cases.pages import bad_cursor, place_after, sequence_after
from redkey.shapes.fields import (
    BATCH_LIMIT,
    Attempts,
    Body,
    Id,
    IdempotencyKey,
    LeaseSeconds,
    Name,
    Seconds,
    Sentence,
    Sha256,
    Slug,
    Text,
    Wait,
    Word,
    given,
)
from redkey.shapes.fields import Page as Listed
from redkey.shapes.fields import PageQuery as Page

__all__ = [
    "BATCH_LIMIT",
    "Attempts",
    "Body",
    "Id",
    "IdempotencyKey",
    "LeaseSeconds",
    "Listed",
    "Name",
    "Page",
    "Seconds",
    "Sentence",
    "Sha256",
    "Slug",
    "Text",
    "Wait",
    "Word",
    "bad_cursor",
    "given",
    "place_after",
    "sequence_after",
    "wrong",
]
