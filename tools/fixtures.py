"""The derived fixtures of Agent Wire 1.1: `python -m tools.fixtures` writes them, `make verify` proves them current.

- `derived/<type>.jsonl`: one case a line, `{name, stage, code, pointer, wire}`: a wire that breaks one thing, and
  what must be found where. `derived/envelope.jsonl` has what the envelope asks of every type.
- `derived/largest.jsonl`: the largest legal wires, one a line, as canonical bytes.
"""

from __future__ import annotations

from pathlib import Path

import orjson

from redkey.wire.canonical import canonical
from redkey.wire.catalogue import FIXTURES, catalogue
from tools.derive import ENVELOPE_EVENT, Case, envelope_cases, file_stem, own_cases
from tools.largest import largest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = f"{FIXTURES}/derived"


def generated() -> dict[str, bytes]:
    """Return every derived file by its path from the root of the repository."""
    made = {f"{FOLDER}/{file_stem(event)}.jsonl": _lines(own_cases(event)) for event in catalogue()}
    made[f"{FOLDER}/envelope.jsonl"] = _lines(envelope_cases(ENVELOPE_EVENT))
    wires = [wire for event in catalogue() for wire in largest(event)]
    made[f"{FOLDER}/largest.jsonl"] = b"".join(canonical(wire) + b"\n" for wire in wires)
    return made


def _lines(cases: list[Case]) -> bytes:
    lines = [
        {"name": case.name, "stage": "schema", "code": case.code, "pointer": case.pointer, "wire": case.wire}
        for case in cases
    ]
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def main() -> None:
    (ROOT / FOLDER).mkdir(exist_ok=True)
    for name, data in generated().items():
        (ROOT / name).write_bytes(data)


if __name__ == "__main__":
    main()
