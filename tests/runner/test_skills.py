"""Skills: found by name in the agent's own directory before the shared ones; what is missing or malformed is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.errors import SkillRefused
from redkey.runner.skills import SHARED, resolve


def _write(directory: Path, name: str, text: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.md").write_text(text, encoding="utf-8")


def test_the_shared_skills_ship_with_redkey() -> None:
    assert [skill.name for skill in resolve(SHARED)] == list(SHARED)
    assert all(skill.description and skill.text for skill in resolve(SHARED))


def test_an_agents_own_skill_goes_before_a_shared_one_of_the_same_name(tmp_path: Path) -> None:
    _write(tmp_path, "platform-env", "---\nname: platform-env\ndescription: >\n  Two\n  lines.\n---\nOurs.\n")
    (found,) = resolve(["platform-env", "platform-env"], [tmp_path])
    assert (found.text, found.description) == ("Ours.", "Two lines.")


def test_a_skill_may_be_a_directory(tmp_path: Path) -> None:
    _write(tmp_path / "deploy", "SKILL", "---\nname: deploy\ndescription: x\n---\nStep one.\n")
    assert resolve(["deploy"], [tmp_path])[0].text == "Step one."


def test_a_missing_skill_is_named_with_the_places_that_were_looked_at(tmp_path: Path) -> None:
    with pytest.raises(SkillRefused, match="mindy-protocol") as refused:
        resolve(["mindy-protocol"], [tmp_path])
    assert refused.value.code == "skill_missing"
    assert str(tmp_path) in refused.value.message


@pytest.mark.parametrize("name", ["../secret", "a/b", "", "A", "x" * 65, "."])
def test_a_name_that_could_lead_elsewhere_is_no_skills_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(SkillRefused):
        resolve([name], [tmp_path])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("No front matter.", "skill_matter"),
        ("---\nname: x\n", "skill_matter"),
        ("---\n- name\n---\nText", "skill_matter"),
        ("---\nname: other\n---\nText", "skill_name"),
        ("---\nname: x\n---\n \n", "skill_empty"),
        ("---\nname: x\n---\n" + "y" * 70_000, "skill_too_large"),
    ],
)
def test_a_malformed_skill_is_refused_with_its_reason(text: str, code: str, tmp_path: Path) -> None:
    _write(tmp_path, "x", text)
    with pytest.raises(SkillRefused) as refused:
        resolve(["x"], [tmp_path])
    assert refused.value.code == code


def test_bytes_that_are_no_text_are_no_skill(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_bytes(b"---\nname: x\n---\n\xff\xfe")
    with pytest.raises(SkillRefused):
        resolve(["x"], [tmp_path])
