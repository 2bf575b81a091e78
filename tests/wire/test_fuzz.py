"""A bounded fuzz run: every mutation of a fixture is read or refused with a finding."""

from __future__ import annotations

import os
import random
from collections import Counter

import orjson
import pytest

from redkey.errors import JsonRefused, WireRefused
from redkey.wire import files
from redkey.wire.canonical import canonical
from redkey.wire.catalogue import FIXTURES
from redkey.wire.decode import decode
from redkey.wire.validate import MESSAGE_LIMIT, read, validate

LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
RUNS = 60_000 if LONG else 1_500
SEEDS = range(8 if LONG else 4)
FOLDER = files.root() / FIXTURES
CORPUS = [path.read_bytes() for path in sorted(FOLDER.glob("*.json"))]
CORPUS += [canonical(orjson.loads(path.read_bytes())) for path in sorted(FOLDER.glob("*.valid*.json"))]
CORPUS += (FOLDER / "derived" / "largest.jsonl").read_bytes().splitlines()
TOKENS = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b"\\u0000", b"\\ud800", b"null", b"1e400", b"NaN", b"-0"]
TOKENS += [b"9007199254740993", b"\x00", b"\xef\xbb\xbf", b"\xff", b"\xf0\x9f\x98\x80", b"1.0", b'"wire":"1.1",', b"\n"]


def _mutated(chance: random.Random, data: bytes) -> bytes:
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.choice((1, 2, 8, 64)))
        match chance.randrange(7):
            case 0:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[to:]
            case 2:
                data = data[:at] + data[at:to] * chance.choice((2, 3, 40)) + data[to:]
            case 3:
                data = data[:at] + chance.choice(TOKENS) + data[at:]
            case 4:
                other = chance.choice(CORPUS)
                data = data[:at] + other[chance.randrange(len(other) + 1) :]
            case 5:
                data = data[:at] + chance.choice(TOKENS) + data[to:]
            case _:
                word = chance.choice((b"0", b"1", b"true", b'""', b"{}", b"[]"))
                data = data.replace(chance.choice((b"1", b"true", b"false", b"{", b'"task')), word, 1)
    return data


def _outcome(data: bytes) -> str:
    try:
        wire = read(data)
    except (JsonRefused, WireRefused) as refused:
        for finding in refused.findings():
            assert finding.code
            assert finding.message
            assert finding.pointer == "" or finding.pointer.startswith("/")
            orjson.dumps(finding.as_json())
        return refused.code
    message = canonical(wire)
    assert len(message) <= MESSAGE_LIMIT
    assert read(message) == wire
    assert validate(decode(data)) == []
    return "valid"


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_fixtures_are_read_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    seen = Counter(_outcome(_mutated(chance, chance.choice(CORPUS))) for _ in range(RUNS))
    # The run reached every stage: valid wires, bytes that are no JSON, and JSON that is no wire.
    assert seen["valid"]
    assert seen["json_syntax"]
    assert {code.split("_")[0] for code in seen} >= {"valid", "json", "schema", "unknown"}
