"""Every reader returns a value, or refuses with a code, for any bytes and any JSON value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import RedKeyError
from redkey.wire import files
from redkey.wire.card import read_card
from redkey.wire.decode import decode
from redkey.wire.legacy import read_wire_1_0
from redkey.wire.lift import lift
from redkey.wire.lint import lint_card, lint_wire, read_registry
from redkey.wire.step import check_step, read_step_input, read_step_output
from tests.wire.arbitrary import gone_wrong, json_values

READERS: dict[str, Callable[[Any], object]] = {
    "wire 1.0": lambda value: lint_wire(read_wire_1_0(value)),
    "lift": lambda value: lift(value).as_json(),
    "card": lambda value: lint_card(read_card(value)),
    "registry": read_registry,
    "step": check_step,
    "step input": read_step_input,
    "step output": read_step_output,
}


def _documents() -> list[Any]:
    folders = ("agent-wire/v1.0", "agent-wire/loose", "cards", "agent-protocol", "agent-protocol/migrations")
    return [
        files.load(f"fixtures/{folder}/{name}")
        for folder in folders
        for name in files.names(f"fixtures/{folder}", ".json")
        if "invalid" not in name and "expectations" not in name
    ]


DOCUMENTS = _documents()


def _refusal(read: Callable[[], object]) -> RedKeyError | None:
    try:
        read()
    except RedKeyError as refused:
        return refused
    return None


def _check_all(data: bytes) -> None:
    """Check that the bytes are refused as JSON, or that every reader handles the value."""
    refused = _refusal(lambda: decode(data))
    if refused is not None:
        assert refused.code.startswith("json_")
        return
    for reader in READERS:
        _check(reader, decode(data))


def _check(reader: str, value: Any) -> None:
    refused = _refusal(lambda: READERS[reader](value))
    if refused is None:
        return
    assert 0 < len(refused.findings()) <= 50
    for finding in refused.findings():
        assert finding.code
        assert finding.message
        assert finding.pointer == "" or finding.pointer.startswith("/")


@pytest.mark.parametrize("reader", READERS)
@given(value=json_values | gone_wrong(DOCUMENTS))
def test_any_json_value_gets_an_answer(reader: str, value: Any) -> None:
    _check(reader, value)


@given(data=st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    _check_all(data)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    path: Path = draw(st.sampled_from(sorted((files.root() / "fixtures").glob("[ac]*/**/*.valid*.json"))))
    data = bytearray(path.read_bytes())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


@given(data=_damaged())
def test_a_damaged_document_gets_an_answer(data: bytes) -> None:
    _check_all(data)


@pytest.mark.parametrize("reader", READERS)
def test_a_document_with_ten_thousand_errors_gets_a_short_reply(reader: str) -> None:
    value: dict[str, Any] = {f"field {number}": None for number in range(10_000)}
    value |= {"wire": "1.0", "type": "claim", "card_version": "1.0", "success": True, "summary": 1, "artifacts": 1}
    _check(reader, value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xef\xbb\xbf{}",
        b"{} {}",
        b'{"wire":"1.0","wire":"1.0"}',
        b'{"wire":NaN}',
        b'{"wire":9007199254740993}',
        b'{"wire":"\\ud800"}',
        b'{"wire":"\\u0000"}',
        b"[" * 100_000,
        b'"' + b"x" * (1024 * 1024) + b'"',
        b"\xff\xfe{\x00}\x00",
    ],
    ids=["empty", "bom", "two", "twice", "nan", "2^53", "surrogate", "nul", "deep", "large", "utf-16"],
)
def test_what_two_parsers_could_read_differently_is_refused(data: bytes) -> None:
    refused = _refusal(lambda: decode(data))
    assert refused is not None
    assert refused.code.startswith("json_")
