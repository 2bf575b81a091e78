"""Quote foreign text in a prompt: line by line, with a label, and cut to a maximum length.

A prompt is Markdown. Foreign text that could begin a line could begin a section. So it is either put on one line after
the runner's own words (`one_line`, `item`), or every line of it starts with `> ` (`quote`). The operator's own Markdown
(skills, a persona) keeps its lines, but its headings are moved below those of the prompt (`demote`).
"""

from __future__ import annotations

import re
import unicodedata

# All characters that some reader treats as the end of a line.
_LINE_ENDS = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BLANKS = re.compile(r"\s+")
# Beginnings that give a line of Markdown a meaning.
_MARKUP = re.compile(r"^(?:[#>+*=`~|<-]|\d+[.)](?=\s|$))")
_HEADING = re.compile(r"^( {0,3})(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_SOURCE = re.compile(r"[^\w:.@-]+")


def visible(text: str) -> str:
    """Remove invisible characters that a model might obey: controls, direction marks, tag characters."""
    return "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cf", "Cs"))


def one_line(text: str, most: int = 4000) -> str:
    """Put a text on one line that Markdown reads as plain text."""
    line = _BLANKS.sub(" ", visible(_LINE_ENDS.sub(" ", text))).strip()
    return _MARKUP.sub(lambda found: "\\" + found[0], capped(line, most))


def item(text: str, most: int = 4000) -> str:
    """Return a text as a list item."""
    return f"- {one_line(text, most)}"


def source(name: str) -> str:
    """Return the source of a text as a safe label."""
    return _SOURCE.sub("_", visible(name))[:80] or "unknown"


def quote(text: str, most: int = 4000) -> str:
    """Put `> ` before every line; cut the text after `most` characters and say so."""
    lines = _LINE_ENDS.split(capped(_LINE_ENDS.sub("\n", text).strip(), most))
    return "\n".join(f"> {visible(line)}".rstrip() for line in lines)


def capped(text: str, most: int) -> str:
    """Cut a text after `most` characters, with a note on how many were left out."""
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()} … ({len(text) - most:,} more characters left out)"


def demote(markdown: str, below: int) -> str:
    """Move all headings of Markdown below level `below`; fenced blocks stay unchanged."""
    lines, fence = [], ""
    for line in _LINE_ENDS.sub("\n", markdown).strip("\n").split("\n"):
        mark = _FENCE.match(line)
        if fence:
            lines.append(line)
            if mark and _closes(mark, fence):
                fence = ""
            continue
        if mark:
            fence = mark[1]
        elif _UNDERLINE.match(line) and lines and lines[-1].strip():
            # An underlined heading has no deeper level, so its underline is escaped.
            line = "\\" + line.lstrip()
        else:
            line = _HEADING.sub(lambda found: found[1] + "#" * min(6, len(found[2]) + below), line)
        lines.append(line)
    if fence:
        lines.append(fence)
    return "\n".join(lines)


def _closes(mark: re.Match[str], fence: str) -> bool:
    return mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip()
