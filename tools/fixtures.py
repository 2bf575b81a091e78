"""The derived fixtures of Agent Wire 1.1: `python -m tools.fixtures` writes them, `make verify` proves them current.

- `derived/<type>.jsonl`: one case per line, `{name, stage, code, pointer, wire}`: a wire that breaks one rule, and the
  expected finding. `derived/envelope.jsonl` has the rules of the envelope, which apply to every type.
- `derived/largest.jsonl`: the largest legal wires, one per line, as canonical bytes.
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
    by_path = {f"{FOLDER}/{file_stem(event)}.jsonl": _lines(own_cases(event)) for event in catalogue()}
    by_path[f"{FOLDER}/envelope.jsonl"] = _lines(envelope_cases(ENVELOPE_EVENT))
    wires = [wire for event in catalogue() for wire in largest(event)]
    by_path[f"{FOLDER}/largest.jsonl"] = b"".join(canonical(wire) + b"\n" for wire in wires)
    return by_path


def _lines(cases: list[Case]) -> bytes:
    lines = [
        {"name": case.name, "stage": "schema", "code": case.code, "pointer": case.pointer, "wire": case.wire}
        for case in cases
    ]
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def main() -> None:
    """Write the fixtures."""
    (ROOT / FOLDER).mkdir(exist_ok=True)
    for name, data in generated().items():
        (ROOT / name).write_bytes(data)


if __name__ == "__main__":
    main()
