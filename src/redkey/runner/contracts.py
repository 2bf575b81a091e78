"""Output contracts: the JSON Schemas that `schema_ref` of a brief names by slug.

They are files in `definitions/contracts/` and in the user's own directories, which take precedence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs
import msgspec

from redkey.errors import ConfigRefused, Finding, JsonRefused
from redkey.wire import files
from redkey.wire.decode import decode
from redkey.wire.schema import Checker, checker_of, compile_schema

FOLDER = "definitions/contracts"
OutputType = Literal["file", "json", "pr", "message", "report"]


class Contract(msgspec.Struct, frozen=True):
    """One contract: the output types it is for, and the JSON Schema that they must fit."""

    slug: str
    title: str
    description: str
    types: tuple[OutputType, ...]
    schema: dict[str, Any]

    def checker(self) -> Checker:
        return checker_of(self.schema)


class Contracts:
    """All contracts of a runner, by slug."""

    def __init__(self, directories: Sequence[Path] = ()) -> None:
        self._found: dict[str, Contract] = {}
        for directory in (files.root() / FOLDER, *reversed(directories)):
            if not directory.is_dir():
                raise ConfigRefused(f"{directory} is not a directory of contracts")
            for path in sorted(directory.glob("*.json")):
                if not path.name.endswith(".schema.json"):
                    contract = read_contract(path)
                    self._found[contract.slug] = contract

    def __iter__(self) -> Iterator[Contract]:
        return iter(sorted(self._found.values(), key=lambda contract: contract.slug))

    def get(self, slug: str) -> Contract | None:
        return self._found.get(slug)

    def problem(self, slug: str | None, kind: str) -> Finding | None:
        """Return why a brief cannot use this contract; None if it can."""
        if slug is None:
            return None
        contract = self.get(slug)
        if contract is None:
            known = ", ".join(sorted(self._found))
            return Finding("contract_unknown", "/schema_ref", f"there is no output contract {slug!r}; known: {known}")
        if kind not in contract.types:
            text = f"the contract {slug} is for {', '.join(contract.types)}, not for {kind}"
            return Finding("contract_type", "/schema_ref", text)
        return None


def read_contract(path: Path) -> Contract:
    """Read a contract file, whose name is its slug; ConfigRefused lists what is wrong."""
    try:
        value = decode(path.read_bytes())
    except (OSError, JsonRefused) as cause:
        raise ConfigRefused(f"{path} cannot be read: {cause}") from cause
    findings = compile_schema(f"{FOLDER}/contract.schema.json").findings(value)
    if findings:
        problems = "; ".join(f"{one.pointer or '/'}: {one.message}" for one in findings[:5])
        raise ConfigRefused(f"{path}: {problems}", code="contract_invalid")
    contract = msgspec.convert(value, Contract)
    if contract.slug != path.stem:
        raise ConfigRefused(f"{path}: its slug is {contract.slug!r}", code="contract_invalid")
    try:
        contract.checker()
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as cause:
        raise ConfigRefused(f"{path}: its schema is invalid: {cause}", code="contract_invalid") from cause
    return contract
