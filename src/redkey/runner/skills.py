"""Skills: Markdown files with front matter that are put into prompts. An agent's own come first, then shared ones.

A skill is `<directory>/<name>.md` or `<directory>/<name>/SKILL.md`. Its front matter has `name` and `description`, and
nothing in it is executed. The first directory that has a skill wins; RedKey's own skills come last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from redkey.errors import SkillRefused
from redkey.wire import files

# Skills that every agent gets by default (seed 000).
SHARED: Final = ("platform-env", "inbox-protocol", "agent-protocol")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_FIELD = re.compile(r"([a-z][a-z_-]*):[ \t]*(.*)")
_SIZE_LIMIT = 64 * 1024


class Skill(msgspec.Struct, frozen=True):
    """One skill: name, description and text."""

    name: str
    description: str
    text: str


def shipped() -> Path:
    """Return the directory of RedKey's own skills."""
    return files.root() / "definitions" / "skills"


def resolve(names: Iterable[str], directories: Sequence[Path] = ()) -> tuple[Skill, ...]:
    """Return the skills with these names, without duplicates; SkillRefused names the first missing one."""
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
    """Read a skill file; its front matter must have the expected name."""
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
        raise SkillRefused(f"{path}: the skill has no text", code="skill_empty")
    return Skill(name, fields.get("description", ""), body.strip())


def _split(text: str, path: Path) -> tuple[str, str]:
    if not text.startswith("---\n") or "\n---\n" not in text[3:]:
        raise SkillRefused(f"{path}: a skill begins with front matter between two lines of ---", code="skill_matter")
    matter, _, body = text[4:].partition("\n---\n")
    return matter, body


def _fields(matter: str, path: Path) -> dict[str, str]:
    """Parse the fields of the front matter; an indented line continues the one before, as in YAML."""
    fields: dict[str, str] = {}
    last = ""
    for number, line in enumerate(matter.split("\n"), 2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _FIELD.fullmatch(line)
        if found:
            last = found[1]
            # After `>` or `|` the text is on the following lines.
            fields[last] = "" if found[2].strip() in (">", "|", ">-", "|-") else found[2].strip().strip("\"'")
        elif last and line[:1] in " \t":
            fields[last] = f"{fields[last]} {line.strip()}".strip()
        else:
            raise SkillRefused(f"{path}:{number}: front matter has lines `name: text`", code="skill_matter")
    return fields
