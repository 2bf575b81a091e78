"""Values on the command line: JSON as text, from a file, or from standard input."""

from __future__ import annotations

from typing import Any

import click
import orjson

from redkey.cli.documents import decode_document
from redkey.errors import JsonRefused

_LIMIT = 16 * 1024 * 1024


def json_value(text: str) -> Any:
    """JSON: the text itself, `@FILE`, or `-` for standard input."""
    source = text if text == "-" else text.removeprefix("@") if text.startswith("@") else None
    return json_file(source) if source is not None else _decoded(text.encode(), text[:40])


def json_file(path: str) -> Any:
    """The JSON in a file; `-` is standard input."""
    try:
        with click.open_file(path, "rb") as stream:
            return _decoded(stream.read(_LIMIT + 1), path)
    except OSError as cause:
        raise click.BadParameter(f"{path} cannot be read: {cause.strerror}") from cause


def document_file(path: str) -> Any:
    """The document in a file: YAML where its name says so (extra `redkey[yaml]`), else JSON; `-` is standard input."""
    if not path.endswith((".yaml", ".yml")):
        return json_file(path)
    try:
        import yaml
    except ImportError as cause:
        raise click.BadParameter(f"{path}: YAML needs pip install 'redkey[yaml]'") from cause
    try:
        with click.open_file(path, "rb") as stream:
            # Through JSON: what YAML knows beyond it, such as dates, is written as text or refused.
            return _decoded(orjson.dumps(yaml.safe_load(stream.read(_LIMIT)), default=str), path)
    except (OSError, yaml.YAMLError, TypeError) as cause:
        raise click.BadParameter(f"{path} cannot be read: {cause}") from cause


def _decoded(data: bytes, name: str) -> Any:
    try:
        return decode_document(data, _LIMIT)
    except JsonRefused as refused:
        raise click.BadParameter(f"{name}: {refused.message} [{refused.code}]") from refused
