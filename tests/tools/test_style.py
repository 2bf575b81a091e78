"""The style check finds functions that are too long, and the source passes it."""

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
