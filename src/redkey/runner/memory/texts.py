"""How every store handles texts: cut them, and extract the words to search for."""

from __future__ import annotations

import re
from typing import Final

from redkey.errors import MemoryRefused

# How many memories one owner may have.
KEPT: Final = 20_000
TEXT_CHARACTERS: Final = 8000
_WORDS: Final = 48
_WORD = re.compile(r"\w+")
# Common words. A memory that shares only these with a question is not relevant.
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
    """Return the text to store: cut, without characters that a database cannot store; MemoryRefused if empty."""
    text = asked_text(text)
    if not text:
        raise MemoryRefused("the text to remember is empty", code="memory_empty")
    return text


def asked_text(text: str) -> str:
    """Return a question in the same form; it may be empty."""
    # PostgreSQL cannot store NUL, and lone surrogates cannot be encoded as UTF-8.
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8").strip()[:TEXT_CHARACTERS].rstrip()


def query_words(about: str) -> list[str]:
    """Return the words of a question to search for, without duplicates."""
    words = dict.fromkeys(_WORD.findall(asked_text(about).lower()))
    return [word for word in words if word not in _COMMON][:_WORDS]
