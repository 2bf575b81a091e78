"""What every store of memories does with texts: cut them, and find the words to search by."""

from __future__ import annotations

import re
from typing import Final

from redkey.errors import MemoryRefused

# How many memories of one owner are kept.
KEPT: Final = 20_000
TEXT_CHARACTERS: Final = 8000
_WORDS: Final = 48
_WORD = re.compile(r"\w+")
# Words that say nothing about a subject. A memory that shares only these with a question is not relevant.
_COMMON: Final = frozenset(
    _WORD.findall(
        """
        a about after all also an and any are as at be because been before but by can could did do does for from had has
        have he her his how i if in into is it its just me more my no not of on only or our out over she should so some
        than that the their them then there these they this to under until up was we were what when where which while
        who why will with without would you your
        """
    )
)


def kept_text(text: str) -> str:
    """The text as it is stored: without characters that a database cannot store, and cut; MemoryRefused if empty."""
    text = asked_text(text)
    if not text:
        raise MemoryRefused("there is nothing to remember", code="memory_empty")
    return text


def asked_text(text: str) -> str:
    """The same for a question, which may be empty."""
    # PostgreSQL stores no NUL, and a lone surrogate has no UTF-8.
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8").strip()[:TEXT_CHARACTERS].rstrip()


def query_words(about: str) -> list[str]:
    """The words of a question that a memory may share, each once."""
    words = dict.fromkeys(_WORD.findall(asked_text(about).lower()))
    return [word for word in words if word not in _COMMON][:_WORDS]
