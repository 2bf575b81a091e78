"""Output contracts: what a slug in `schema_ref` asks of an output beyond its type. Files in `definitions/contracts/`,
and in directories of one's own, which come first."""

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
    """One contract: which types of output it is for, and a JSON Schema of what is checked of them."""

    slug: str
    title: str
    description: str
    types: tuple[OutputType, ...]
    schema: dict[str, Any]

    def checker(self) -> Checker:
        return checker_of(self.schema)


class Contracts:
    """The contracts that a runner knows, by slug."""

    def __init__(self, directories: Sequence[Path] = ()) -> None:
        self._found: dict[str, Contract] = {}
        for directory in (files.root() / FOLDER, *reversed(directories)):
            if not directory.is_dir():
                raise ConfigRefused(f"{directory} is no directory of contracts")
            for path in sorted(directory.glob("*.json")):
                if not path.name.endswith(".schema.json"):
                    contract = read_contract(path)
                    self._found[contract.slug] = contract

    def __iter__(self) -> Iterator[Contract]:
        return iter(sorted(self._found.values(), key=lambda contract: contract.slug))

    def get(self, slug: str) -> Contract | None:
        return self._found.get(slug)

    def problem(self, slug: str | None, kind: str) -> Finding | None:
        """Why a brief cannot ask for this contract; None when it can."""
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
    """The contract in a file, which bears its slug; ConfigRefused with everything wrong with it."""
    try:
        value = decode(path.read_bytes())
    except (OSError, JsonRefused) as cause:
        raise ConfigRefused(f"{path} cannot be read: {cause}") from cause
    findings = compile_schema(f"{FOLDER}/contract.schema.json").findings(value)
    if findings:
        told = "; ".join(f"{one.pointer or '/'}: {one.message}" for one in findings[:5])
        raise ConfigRefused(f"{path}: {told}", code="contract_invalid")
    contract = msgspec.convert(value, Contract)
    if contract.slug != path.stem:
        raise ConfigRefused(f"{path}: its slug is {contract.slug!r}", code="contract_invalid")
    try:
        contract.checker()
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as cause:
        raise ConfigRefused(f"{path}: its schema is none: {cause}", code="contract_invalid") from cause
    return contract
