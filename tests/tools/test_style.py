"""The style check finds long functions, and in swept packages words that are not plain and missing docstrings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import style


def test_the_source_keeps_every_limit() -> None:
    assert style.judge(style.ROOT) == []


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_long_function_is_named_with_its_line(
    keyword: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "    pass\n" * style.FUNCTION_LINES
    module = tmp_path / "src" / "deep" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text(f"# A comment.\n\n{keyword} much():\n{body}\n\ndef little():\n{body[9:]}")
    assert style.main(["--root", str(tmp_path)]) == 1
    assert capsys.readouterr().out == "src/deep/module.py:3: much has 71 lines, 70 are allowed\n"


def _findings(root: Path, text: str) -> list[str]:
    module = root / "src" / "swept" / "module.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(text)
    return [line.partition("module.py:")[2] for line in style.judge(root, ("src/swept",))]


def test_words_that_are_not_plain_are_found_in_prose_and_not_in_names(tmp_path: Path) -> None:
    prose = '"""A module.\n\nWhoever reads it decodes it."""\n\n# Where it stands.\nstands = f"{1} is told"\n'
    text = prose + 'nobody = "stands"\n'
    found = [line.partition(" is not")[0] for line in _findings(tmp_path, text)]
    assert found == ["3: 'Whoever'", "5: 'stands'", "6: 'is told'"]


def test_a_list_of_words_is_no_prose(tmp_path: Path) -> None:
    assert _findings(tmp_path, '"""A module."""\n\nWORDS = """\nsomebody anybody\neverybody\n"""\n') == []


def test_public_names_have_docstrings_and_modules_keep_their_length(tmp_path: Path) -> None:
    assert _findings(tmp_path, "class Public:\n    pass\n\n\ndef _private():\n    pass\n") == [
        "1: the module has no docstring",
        "1: Public has no docstring",
    ]
    lines = '"""A module."""\n' + "x = 1\n" * style.MODULE_LINES
    assert _findings(tmp_path, lines) == ["301: the module has 301 lines, 300 are allowed"]


def test_packages_that_are_not_swept_keep_their_words(tmp_path: Path) -> None:
    _findings(tmp_path, "# Where it stands.\n")
    assert style.judge(tmp_path, ("src/swep",)) == []


def test_everything_that_the_lists_name_exists() -> None:
    listed = (*style.SWEPT, *style.LONG_MODULES, *style.GENERATED)
    assert [name for name in listed if not any(style.ROOT.glob(name))] == []


def test_a_pattern_covers_the_files_of_its_folder_and_not_those_below(tmp_path: Path) -> None:
    for place in ("src/stores", "src/stores/postgres"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "module.py").write_text('"""Where it stands."""\n')
    assert style.judge(tmp_path, ("src/stores/*.py",)) == [
        "src/stores/module.py:1: 'stands' is not plain English; see CONTRIBUTING.md"
    ]
