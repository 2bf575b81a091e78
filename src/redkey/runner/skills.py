"""Skills: Markdown files with front matter, knowledge for a prompt. An agent's own come first, then shared ones.

A skill is `<directory>/<name>.md` or `<directory>/<name>/SKILL.md`. Its front matter holds `name` and `description`
and nothing that runs. The first directory that has a skill wins; the ones that ship with RedKey come last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from redkey.errors import SkillRefused
from redkey.wire import files

# Skills that every agent gets unless it is told otherwise (seed 000).
SHARED: Final = ("platform-env", "inbox-protocol", "agent-protocol")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_FIELD = re.compile(r"([a-z][a-z_-]*):[ \t]*(.*)")
_SIZE_LIMIT = 64 * 1024


class Skill(msgspec.Struct, frozen=True):
    """One skill: what it is called, when it helps, and what it says."""

    name: str
    description: str
    text: str


def shipped() -> Path:
    """The directory of the skills that ship with RedKey."""
    return files.root() / "definitions" / "skills"


def resolve(names: Iterable[str], directories: Sequence[Path] = ()) -> tuple[Skill, ...]:
    """The skills with these names, each once; SkillRefused names the first that is nowhere."""
    places = [*directories, shipped()]
    return tuple(_find(name, places) for name in dict.fromkeys(names))


def _find(name: str, places: Sequence[Path]) -> Skill:
    if not _NAME.fullmatch(name):
        raise SkillRefused(f"{name[:64]!r} is not a skill's name: lower-case letters, digits and dashes")
    for place in places:
        for path in (place / f"{name}.md", place / name / "SKILL.md"):
            if path.is_file():
                return read_skill(path, name)
    looked = ", ".join(str(place) for place in places)
    raise SkillRefused(f"there is no skill {name!r} in {looked}", code="skill_missing")


def read_skill(path: Path, name: str) -> Skill:
    """The skill in a file, which must bear the name it was looked up by."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise SkillRefused(f"{path}: {cause}") from cause
    if len(data) > _SIZE_LIMIT:
        raise SkillRefused(f"{path}: a skill has at most {_SIZE_LIMIT:,} bytes", code="skill_too_large")
    matter, body = _split(text.replace("\r\n", "\n"), path)
    fields = _fields(matter, path)
    if fields.get("name") != name:
        raise SkillRefused(f"{path}: its front matter must say name: {name}", code="skill_name")
    if not body.strip():
        raise SkillRefused(f"{path}: the skill says nothing", code="skill_empty")
    return Skill(name, fields.get("description", ""), body.strip())


def _split(text: str, path: Path) -> tuple[str, str]:
    if not text.startswith("---\n") or "\n---\n" not in text[3:]:
        raise SkillRefused(f"{path}: a skill begins with front matter between two lines of ---", code="skill_matter")
    matter, _, body = text[4:].partition("\n---\n")
    return matter, body


def _fields(matter: str, path: Path) -> dict[str, str]:
    """The scalars of the front matter; an indented line continues the one before, as YAML folds it."""
    fields: dict[str, str] = {}
    last = ""
    for number, line in enumerate(matter.split("\n"), 2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _FIELD.fullmatch(line)
        if found:
            last = found[1]
            # `>` and `|` say that the text stands on the lines below.
            fields[last] = "" if found[2].strip() in (">", "|", ">-", "|-") else found[2].strip().strip("\"'")
        elif last and line[:1] in " \t":
            fields[last] = f"{fields[last]} {line.strip()}".strip()
        else:
            raise SkillRefused(f"{path}:{number}: front matter has lines `name: text`", code="skill_matter")
    return fields
