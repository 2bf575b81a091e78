"""The check for duplicates finds repeated runs, by their lines or by their shape, and enforces the limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import duplicates

RUN = """\
def total(orders):
    price = 0
    for order in orders:
        price += order.price * order.count
    print("total", price)
    return price
"""
OTHER_NAMES = RUN.replace("order", "line").replace("price", "cost").replace("total", "sum").replace("= 0", "= 7")


def _judge(folder: Path, **files: str) -> tuple[int, int]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    found, _ = duplicates.judge(folder, duplicates.LIMITS)
    return len(found["same"]), len(found["shape"])


def test_the_source_is_within_its_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert duplicates.main([]) == 0, capsys.readouterr().out


def test_the_same_lines_in_two_files_are_a_pair(tmp_path: Path) -> None:
    indented = "".join(f"    {line}\n\n    # Why.\n" for line in RUN.splitlines())
    assert _judge(tmp_path, one=RUN, two=f"class Two:\n{indented}", three="x = 1\n") == (1, 0)


def test_other_names_and_numbers_make_a_pair_by_shape(tmp_path: Path) -> None:
    assert _judge(tmp_path, one=RUN, two=OTHER_NAMES) == (0, 1)


def test_another_operator_or_keyword_makes_no_pair(tmp_path: Path) -> None:
    assert _judge(tmp_path, one=RUN, two=RUN.replace("+=", "-="), three=RUN.replace("return", "yield")) == (0, 0)


def test_a_file_that_repeats_itself_is_a_pair_and_overlapping_runs_are_none(tmp_path: Path) -> None:
    assert _judge(tmp_path, one=RUN + RUN) == (1, 0)
    assert _judge(tmp_path, one="f()\n" * 11) == (0, 0)


def test_five_lines_imports_and_brackets_are_no_run(tmp_path: Path) -> None:
    short = "".join(RUN.splitlines(keepends=True)[:5])
    imports = "import a\nfrom b import c\nfrom d import (\n    e,\n    f,\n    g,\n    h,\n    i,\n    j,\n)\n"
    assert _judge(tmp_path, one=short + imports, two=short + imports) == (0, 0)


def test_what_stands_everywhere_is_no_pair(tmp_path: Path) -> None:
    assert _judge(tmp_path, **{f"file_{number}": RUN for number in range(8)}) == (28, 0)
    assert _judge(tmp_path, file_8=RUN) == (0, 0)


def test_more_pairs_than_allowed_fail_and_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.py").write_text(RUN)
    (tmp_path / "two.py").write_text(RUN)
    monkeypatch.setattr(duplicates, "LIMITS", {"same": 0, "shape": 0})
    assert duplicates.main(["--source", str(tmp_path), "--list"]) == 1
    said = capsys.readouterr().out
    assert "1 pairs of files are alike (same), 0 are allowed" in said
    assert "one.py:1 ~ two.py:1 (1 runs)" in said
    monkeypatch.setattr(duplicates, "LIMITS", {"same": 1, "shape": 0})
    assert duplicates.main(["--source", str(tmp_path)]) == 0


def test_declarations_of_operations_are_compared_line_by_line_only(tmp_path: Path) -> None:
    (tmp_path / "redkey" / "shapes").mkdir(parents=True)
    names = {"redkey/shapes/one": RUN, "redkey/shapes/two": OTHER_NAMES}
    assert _judge(tmp_path, **names) == (0, 0)
    assert _judge(tmp_path, **{"redkey/shapes/two": RUN}) == (1, 0)


def test_fields_and_tables_are_compared_line_by_line_only(tmp_path: Path) -> None:
    fields = "".join(f'    {name}: str = ""\n' for name in "abcdef")
    table = "".join(f'    "{name}": "{name}",\n' for name in "abcdef")
    other = {ord(name): name.upper() for name in "abcdef"}
    for number, run in enumerate((fields, table)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert _judge(folder, one=run, two=run.translate(other)) == (0, 0)
        assert _judge(folder, two=run) == (1, 0)
        # Two lines that do something make it a run like any other.
        once = run + "    total(a, b)\n"
        assert _judge(folder, one=once, two=once.translate(other)) == (0, 0)
        twice = once + "    print(a)\n"
        assert _judge(folder, one=twice, two=twice.translate(other)) == (0, 1)


@pytest.mark.parametrize("line", ['"{}": call({}),', '"{}",', "{},", "*{},", "{}: int = 1,", "| {}", "7: {},"])
def test_declarations_of_every_kind_are_no_code(tmp_path: Path, line: str) -> None:
    one, two = ("".join(f"    {line.replace('{}', name)}\n" for name in names) for names in ("abcdef", "ghijkl"))
    header = "total = (\n    print(total)\n"
    assert _judge(tmp_path, one="x = call(\n" + one, two="y = call(\n" + two) == (0, 0)
    assert _judge(tmp_path, one=header + one, two=header.replace("total", "sum") + two) == (0, 1)


def test_the_first_rule_has_its_own_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of one call and five texts: no pair, but one by the first rule."""
    for name, letters in (("one", "abcdef"), ("two", "ghijkl")):
        (tmp_path / f"{name}.py").write_text("".join(f'    "{letter}",\n' for letter in letters))
    assert duplicates.judge(tmp_path, duplicates.LIMITS)[1] == []
    monkeypatch.setattr(duplicates, "BAR", 0)
    assert duplicates.judge(tmp_path, duplicates.LIMITS)[1] == [
        "1 pairs of files are alike by the first rule, 0 are allowed"
    ]
