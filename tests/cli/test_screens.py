"""The main screens are as they were looked at. `make screens` writes them anew, and a review sees what changed."""

from __future__ import annotations

import pytest

from tests.cli.screens import FOLDER, FRAMES, SCREENS, render


@pytest.fixture(scope="module")
def screens() -> dict[str, str]:
    return render()


@pytest.mark.parametrize("name", sorted([*SCREENS, *FRAMES]))
def test_a_screen_is_as_it_was_looked_at(screens: dict[str, str], name: str) -> None:
    assert screens[f"{name}.txt"] == (FOLDER / f"{name}.txt").read_text(), "if it should change: make screens"


def test_every_file_is_a_screen() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted([*SCREENS, *FRAMES])


@pytest.mark.parametrize("name", [name for name in sorted(SCREENS) if name.endswith("list")] + [*FRAMES])
def test_a_list_is_never_wider_than_its_terminal(name: str) -> None:
    width = 0
    for line in (FOLDER / f"{name}.txt").read_text().splitlines()[1:]:
        if line.startswith("-- "):
            width = int(line.split()[1])
        assert len(line) <= width, line
