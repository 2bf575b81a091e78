"""JSON text that people edit, with comments: set or remove one member and keep every other character.

Clients read their files with `//` and `/* */` comments and trailing commas; so does this module. It finds where values
begin and end, and rewrites nothing else.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.S)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DEEPEST = 200


class JsonBroken(Exception):
    """The text is not JSON; `line` says where."""

    def __init__(self, text: str, at: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = text.count("\n", 0, at) + 1, reason


@dataclass(frozen=True)
class _Member:
    """A member of an object: where its name begins, and where its value begins and ends."""

    name: str
    begin: int
    value: int
    end: int


class _Scanner:
    """Scans JSON with comments and records the members of objects."""

    def __init__(self, text: str) -> None:
        self.text = text

    def blank(self, at: int) -> int:
        """Where the whitespace and comments that begin here end."""
        match = _BLANK.match(self.text, at)
        return match.end() if match else at

    def document(self) -> int:
        """Where the outermost value begins; JsonBroken unless the text is exactly one object."""
        begin = self.blank(0)
        if self.text[begin : begin + 1] != "{":
            raise JsonBroken(self.text, begin, "it is not a JSON object")
        end = self.blank(self.value(begin, 0))
        if end != len(self.text):
            raise JsonBroken(self.text, end, "there is text after the end of the object")
        return begin

    def value(self, at: int, depth: int) -> int:
        """Where the value that begins here ends."""
        char = self.text[at : at + 1]
        if depth > _DEEPEST:
            raise JsonBroken(self.text, at, "it is nested too deep")
        if char == "{":
            return self._object(at, depth)[1]
        if char == "[":
            return self._list(at, depth)
        match = (_STRING if char == '"' else _WORD).match(self.text, at)
        if match is None:
            raise JsonBroken(self.text, at, "a value is missing or is not JSON")
        return match.end()

    def members(self, at: int) -> tuple[list[_Member], int]:
        """The members of the object that begins here, and where it ends."""
        return self._object(at, 0)

    def _object(self, at: int, depth: int) -> tuple[list[_Member], int]:
        members: list[_Member] = []
        at = self.blank(at + 1)
        while self.text[at : at + 1] != "}":
            name = _STRING.match(self.text, at)
            if name is None:
                raise JsonBroken(self.text, at, "a name in quotes, or the end of the object, is missing")
            colon = self.blank(name.end())
            if self.text[colon : colon + 1] != ":":
                raise JsonBroken(self.text, colon, "a colon is missing")
            value = self.blank(colon + 1)
            end = self.value(value, depth + 1)
            members.append(_Member(json.loads(name[0], strict=False), at, value, end))
            at = self._after(end, "}")
        return members, at + 1

    def _list(self, at: int, depth: int) -> int:
        at = self.blank(at + 1)
        while self.text[at : at + 1] != "]":
            at = self._after(self.value(at, depth + 1), "]")
        return at + 1

    def _after(self, end: int, closing: str) -> int:
        """The position after a value: after its comma, or at the closing character."""
        at = self.blank(end)
        char = self.text[at : at + 1]
        if char == ",":
            return self.blank(at + 1)
        if char != closing:
            raise JsonBroken(self.text, at, f"a comma or {closing} is missing")
        return at


def set_member(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with the member at a path set; missing objects on the path are created."""
    if not text.strip():
        return json.dumps(_nested(path, value), indent=2) + "\n"
    scanner = _Scanner(text)
    begin = scanner.document()
    for depth, name in enumerate(path):
        members, end = scanner.members(begin)
        member = next((member for member in members if member.name == name), None)
        if member is None:
            return _insert(text, scanner, begin, end, members, name, _nested(path[depth + 1 :], value))
        if depth == len(path) - 1:
            if _same(text[member.value : member.end], value):
                return text
            return text[: member.value] + _written(value, _margin(text, member.begin)) + text[member.end :]
        if text[member.value] != "{":
            raise JsonBroken(text, member.value, f"{name} is not an object")
        begin = member.value
    return text


def remove_member(text: str, path: tuple[str, ...]) -> str:
    """The text without the member at a path."""
    scanner = _Scanner(text)
    begin = scanner.document()
    for depth, name in enumerate(path):
        members, _ = scanner.members(begin)
        index = next((number for number, member in enumerate(members) if member.name == name), None)
        if index is None:
            return text
        member = members[index]
        if depth < len(path) - 1:
            if text[member.value] != "{":
                return text
            begin = member.value
            continue
        comma = scanner.blank(member.end)
        if text[comma : comma + 1] == ",":
            return text[: member.begin] + text[scanner.blank(comma + 1) :]
        if index:
            # The last member: remove the comma before it too; comments in between stay.
            before = scanner.blank(members[index - 1].end)
            return text[:before] + text[before + 1 : member.begin].rstrip() + text[member.end :]
        return text[: member.begin].rstrip() + text[comma:]
    return text


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _same(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False


def _margin(text: str, at: int) -> str:
    """The whitespace before this position on its line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line if not line.strip() else ""


def _written(value: Any, margin: str) -> str:
    return json.dumps(value, indent=2).replace("\n", "\n" + margin)


def _insert(text: str, scanner: _Scanner, begin: int, end: int, members: list[_Member], name: str, value: Any) -> str:
    """The text with a new last member in an object; comments after the other members stay with them."""
    line = text[text.rfind("\n", 0, begin) + 1 :]
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    margin = _margin(text, members[-1].begin) if members else outer + "  "
    head = text[: begin + 1]
    if members:
        last = members[-1].end
        has_comma = text[scanner.blank(last)] == ","
        head = text[:last] + ("" if has_comma else ",")
        begin = last - 1
    inner = text[begin + 1 : end - 1].rstrip()
    return f"{head}{inner}\n{margin}{json.dumps(name)}: {_written(value, margin)}\n{outer}{text[end - 1 :]}"
