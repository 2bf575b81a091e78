"""Other people's words inside a prompt: quoted line by line, labelled by whoever quotes, and capped.

A prompt is Markdown of lines. Whatever could begin a line of its own could begin a section of its own, so text that
the runner did not write either stands on one line behind words of the runner (`one_line`, `item`), or every line of
it stands behind `> ` (`quote`). Own Markdown (skills, a persona) keeps its lines, but its headings are pushed below
those of the prompt (`demote`).
"""

from __future__ import annotations

import re
import unicodedata

# Everything that some reader takes for the end of a line.
_LINE_ENDS = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BLANKS = re.compile(r"\s+")
# What would make a line of Markdown more than a line of text.
_MARKUP = re.compile(r"^(?:[#>+*=`~|<-]|\d+[.)](?=\s|$))")
_HEADING = re.compile(r"^( {0,3})(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_SOURCE = re.compile(r"[^\w:.@-]+")


def visible(text: str) -> str:
    """The text without what nobody sees and a model may obey: controls, direction marks, tag characters."""
    return "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cf", "Cs"))


def one_line(text: str, most: int = 4000) -> str:
    """The text on one line that is nothing but text, wherever that line stands."""
    line = _BLANKS.sub(" ", visible(_LINE_ENDS.sub(" ", text))).strip()
    return _MARKUP.sub(lambda found: "\\" + found[0], capped(line, most))


def item(text: str, most: int = 4000) -> str:
    """One item of a list."""
    return f"- {one_line(text, most)}"


def source(name: str) -> str:
    """Who or what a text comes from, as a label that can say nothing else."""
    return _SOURCE.sub("_", visible(name))[:80] or "unknown"


def quote(text: str, most: int = 4000) -> str:
    """Every line of the text behind `> `; what is beyond `most` characters is left out, and that is said."""
    lines = _LINE_ENDS.split(capped(_LINE_ENDS.sub("\n", text).strip(), most))
    return "\n".join(f"> {visible(line)}".rstrip() for line in lines)


def capped(text: str, most: int) -> str:
    """At most `most` characters of a text, with a word on how many were left out."""
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()} … ({len(text) - most:,} more characters left out)"


def demote(markdown: str, below: int) -> str:
    """Own Markdown with every heading deeper than level `below`; what it fences stays as it is."""
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
            # An underlined heading has no deeper form.
            line = "\\" + line.lstrip()
        else:
            line = _HEADING.sub(lambda found: found[1] + "#" * min(6, len(found[2]) + below), line)
        lines.append(line)
    if fence:
        lines.append(fence)
    return "\n".join(lines)


def _closes(mark: re.Match[str], fence: str) -> bool:
    return mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip()
