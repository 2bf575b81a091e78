"""The reference pages say something about everything they list."""

from __future__ import annotations

from tools.reference import errors


def test_every_code_of_the_api_has_a_sentence_and_advice() -> None:
    rows = [line.split(" | ") for line in errors.page().splitlines() if line.startswith(("| 4", "| 5"))]
    assert len(rows) > 100
    assert [row for row in rows if len(row) != 4 or not all(part.strip(" |") for part in row)] == []


def test_a_sentence_that_has_a_name_is_found() -> None:
    page = errors.page()
    assert "| 422 | `plan_invalid` | The plan has ... errors; `validation` lists them. |" in page
    assert "| 408 | `body_too_slow` | The body arrived too slowly: ... bytes in ... seconds. |" in page
    assert "| 409 | `last_operator_key` | This is the last operator key" in page
