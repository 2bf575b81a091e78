"""What a person can press in the Studio, read from its sources: buttons, switches, choices, sliders and files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.studio import SOURCES

_OPEN = re.compile(r"<(button|Confirm|summary|select|input)\b(?=[^>]*?)")
_INPUTS = re.compile(r'type="(checkbox|radio|range|file)"')


def controls() -> set[tuple[str, str]]:
    """Return each control as its component and its name; `*` if each of several has a name of its own."""
    found: set[tuple[str, str]] = set()
    for path in sorted((SOURCES / "src").rglob("*.svelte")):
        # What a component is for comes after its script.
        markup = path.read_text().partition("</script>")[2].partition("<style>")[0]
        found.update((path.stem, name or "*") for name in _names(markup))
    return found


def _names(markup: str) -> Iterator[str]:
    for start in _OPEN.finditer(markup):
        kind = start[1]
        end = _end_of_tag(markup, start.end())
        attributes = markup[start.end() : end]
        if kind == "input" and not _INPUTS.search(attributes):
            continue
        if kind == "Confirm":
            yield _attribute(attributes, "label")
            continue
        if name := _attribute(attributes, "aria-label"):
            yield _words(name)
        elif kind in ("button", "summary"):
            yield from _texts(markup[end + 1 : markup.index(f"</{kind}>", end)])
        else:
            yield from _texts(_label_around(markup, start.start()))


def _end_of_tag(markup: str, at: int) -> int:
    """Return where a tag ends; a `>` in an expression does not end it."""
    depth = 0
    while markup[at] != ">" or depth:
        depth += {"{": 1, "}": -1}.get(markup[at], 0)
        at += 1
    return at


def _attribute(attributes: str, name: str) -> str:
    found = re.search(rf'\b{name}="([^"]*)"', attributes)
    return found[1] if found else ""


def _label_around(markup: str, at: int) -> str:
    start = markup.rindex("<label", 0, at)
    text = markup[start : markup.index("</label>", at)]
    return re.sub(r"<select.*?</select>", "", text, flags=re.DOTALL)


def _texts(content: str) -> Iterator[str]:
    """Yield the text of a control; if an expression decides between texts, each of them."""
    choices = re.findall(r'\? "([^"]*)" : "([^"]*)"', content)
    if choices:
        yield from choices[0]
    else:
        yield _words(content)


def _words(content: str) -> str:
    """Return the fixed words of a text: no tags, no blocks, no values, no remarks in parentheses."""
    plain = re.sub(r"\{#if.*?\{/if\}", "", content, flags=re.DOTALL)
    while "{" in plain:
        shorter = re.sub(r"\{[^{}]*\}", "", plain)
        if shorter == plain:
            break
        plain = shorter
    plain = re.sub(r"<[^>]*>|\(.*?\)", "", plain)
    return " ".join(plain.split())
