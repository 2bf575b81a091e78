"""Documents are found in files and on standard input: whole, or as JSON lines, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.cli.documents import _split, check_documents, documents

Write = Callable[[str, bytes], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, data: bytes) -> str:
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return write_file


def _names(path: str, found: list[tuple[str, bytes]]) -> list[str]:
    return [name.removeprefix(path) for name, _ in found]


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"{}\n", b'{\n  "a": 1\n}\n', b'{"a":\n1}', b"[1,\n2]", b"\n\n{}\n\n", b"not json", b'"text"\n"more"'],
)
def test_a_file_is_one_document(write: Write, data: bytes) -> None:
    path = write("a.json", data)
    found = list(documents([path]))
    assert _names(path, found) == [""]
    assert found[0][1].strip() == data.strip()


def test_lines_are_documents_named_by_their_number(write: Write) -> None:
    path = write("a.json", b'{"a":1}\n\n{"a":2}\r\n{"a":\n')
    found = list(documents([path]))
    assert _names(path, found) == [":1", ":3", ":4"]
    assert [data.strip() for _, data in found] == [b'{"a":1}', b'{"a":2}', b'{"a":']


def test_a_broken_first_line_is_one_bad_line(write: Write) -> None:
    path = write("a.json", b'{"a":1,}\n{"a":2}\n')
    results = list(check_documents([path], lambda value: ("thing", [])))
    assert [(result.name.removeprefix(path), result.valid) for result in results] == [(":1", False), (":2", True)]


def test_a_document_behind_many_blank_lines_is_found(write: Write) -> None:
    path = write("a.json", b"\n" * 200_000 + b"{}")
    assert list(documents([path], 1000)) == [(path, b"{}")]


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson"])
def test_the_name_of_a_file_may_say_that_it_holds_lines(write: Write, suffix: str) -> None:
    path = write(f"a.{suffix}", b"1\n[2]\n")
    assert _names(path, list(documents([path]))) == [":1", ":2"]
    assert list(documents([write(f"b.{suffix}", b"")])) == []


def test_a_complaint_about_a_whole_document_names_its_true_line(write: Write) -> None:
    path = write("a.json", b'\n\n{\n  "a": oops\n}\n')
    (result,) = check_documents([path], lambda value: ("thing", []))
    assert "line 4" in result.findings[0].message


@pytest.mark.parametrize("data", [b"[" + b"1," * 100_000, b'{"a":"' + b"x" * 200_000 + b'"}'])
def test_what_is_too_large_is_refused_and_not_kept(write: Write, data: bytes) -> None:
    path = write("a.json", data)
    (found,) = documents([path], 1000)
    assert len(found[1]) <= 3 * 1001
    (result,) = check_documents([path], lambda value: ("thing", []), size_limit=1000)
    assert [finding.code for finding in result.findings] == ["json_too_large"]


def test_a_line_that_is_too_large_spoils_no_other(write: Write) -> None:
    long = b'{"a":"' + b"x" * 50_000 + b'"}'
    path = write("a.jsonl", b"\n".join([b"{}", long, b"{}", long, b"{}"]))
    results = list(check_documents([path], lambda value: ("thing", []), size_limit=1000))
    assert [result.valid for result in results] == [True, False, True, False, True]
    assert [result.name.rsplit(":", 1)[1] for result in results] == ["1", "2", "3", "4", "5"]


@given(st.lists(st.sampled_from([b"{}", b'{"a":1}', b'{"b":"\\n"}', b"", b"  "]), max_size=20), st.integers(20, 40))
def test_lines_come_out_as_they_went_in(lines: list[bytes], most: int) -> None:
    found = list(_split(BytesIO(b"\n".join(lines)), "a.jsonl", most))
    assert [(name, data.strip()) for name, data in found] == [
        (f"a.jsonl:{number}", line) for number, line in enumerate(lines, 1) if line.strip()
    ]


@given(st.binary(max_size=200), st.integers(1, 50), st.sampled_from(["a", "a.jsonl"]))
def test_any_bytes_are_split_in_bounded_memory(data: bytes, most: int, name: str) -> None:
    for _, document in _split(BytesIO(data), name, most):
        assert len(document) <= 3 * most
