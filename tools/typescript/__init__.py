"""The generated part of the TypeScript SDK: `python -m tools.typescript` writes `sdk/typescript/src/generated`.

The OpenAPI document says what every operation accepts and returns; the Python SDK provides the names. So both SDKs have
the same names, and an operation that the Python SDK does not have is named by its tag and operationId. `make verify`
proves that the files are current.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from redkey.api.openapi import document
from redkey.api.surface import routes
from redkey.app import operations_of
from tools.typescript.operations import Operation, find_operations
from tools.typescript.schemas import Types

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "sdk/typescript/src/generated"
_NOTE = "// Written by `python -m tools.typescript` from the OpenAPI document; `make verify` proves it current.\n"


def generated() -> dict[str, bytes]:
    """Every generated file of the SDK, by its path."""
    return files_for(json.loads(document(operations_of(routes()))))


def files_for(described: dict[str, Any]) -> dict[str, bytes]:
    """The files for an OpenAPI document."""
    types = Types(described)
    families: dict[str, list[Operation]] = {}
    for operation in find_operations(described):
        families.setdefault(operation.family, []).append(operation)
    # The signatures come first, because they determine which schemas are used.
    api = _api(families, types)
    texts = {"operations.ts": _table(families), "api.ts": api, "types.ts": types.declared()}
    return {f"{FOLDER}/{name}": (_NOTE + text).encode() for name, text in texts.items()}


def _table(families: dict[str, list[Operation]]) -> str:
    lines = [
        "\n/** Every operation as data: method, path with a place for each id, and what is special about it. */",
        "export const OPERATIONS: Record<string, Record<string, string>> = {",
    ]
    for family, operations in families.items():
        lines.append(f"  {family}: {{")
        lines += [f"    {operation.name}: {json.dumps(operation.words())}," for operation in operations]
        lines.append("  },")
    return "\n".join([*lines, "};\n"])


def _api(families: dict[str, list[Operation]], types: Types) -> str:
    lines = [
        'import type { CallOptions, Pages } from "../calls.js";',
        'import type * as T from "./types.js";',
        "\n/** Every operation of the API, by the names of the Python SDK. */",
        "export interface Api {",
    ]
    for family, operations in families.items():
        lines.append(f"  {family}: {{")
        for operation in operations:
            lines += [f"    /** {operation.summary} */", f"    {operation.signature(types)};"]
        lines.append("  };")
    return "\n".join([*lines, "}\n"])
