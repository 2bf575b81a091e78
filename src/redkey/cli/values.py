"""Values on the command line: JSON as text, from a file, or from standard input."""

from __future__ import annotations

import re
from typing import Any

import click
import orjson

from redkey.cli.documents import decode_document
from redkey.errors import JsonRefused

_LIMIT = 16 * 1024 * 1024


def json_value(text: str) -> Any:
    """Parse JSON: the text itself, `@FILE`, or `-` for standard input."""
    source = text if text == "-" else text.removeprefix("@") if text.startswith("@") else None
    return json_file(source) if source is not None else _decoded(text.encode(), text[:40])


def json_file(path: str) -> Any:
    """Parse the JSON in a file; `-` is standard input."""
    try:
        with click.open_file(path, "rb") as stream:
            return _decoded(stream.read(_LIMIT + 1), path)
    except OSError as cause:
        raise click.BadParameter(f"{path} cannot be read: {cause.strerror}") from cause


def document_file(path: str) -> Any:
    """Parse a document file: YAML if its name says so (extra `redkey[yaml]`), else JSON; `-` is standard input."""
    if not path.endswith((".yaml", ".yml")):
        return json_file(path)
    try:
        import yaml
    except ImportError as cause:
        raise click.BadParameter(f"{path}: YAML needs pip install 'redkey[yaml]'") from cause
    try:
        with click.open_file(path, "rb") as stream:
            # Converted through JSON, so that YAML's extra types, such as dates, become text or are refused.
            return _decoded(orjson.dumps(yaml.safe_load(stream.read(_LIMIT)), default=str), path)
    except (OSError, yaml.YAMLError, TypeError) as cause:
        raise click.BadParameter(f"{path} cannot be read: {cause}") from cause


_EXTENSION = re.compile(r"(?:redkey|a2a|[a-z0-9-]+(?:\.[a-z0-9-]+)+)\.[a-z0-9_-]+")


def extensions_value(text: str) -> dict[str, Any]:
    """Parse extensions. Their names are checked here too, before a queue is created for a request with wrong ones."""
    found = json_value(text)
    if not isinstance(found, dict):
        raise click.BadParameter('extensions are a JSON object, as in {"com.example.shop": {"order": 4711}}')
    for name in found:
        if not _EXTENSION.fullmatch(name):
            raise click.BadParameter(f"{name!r} is no namespaced name: redkey.*, a2a.*, or a reverse domain")
    return found


# Commands that are generated from a declaration have an option of the same name.
extensions_option = click.option(
    "--extensions",
    type=extensions_value,
    metavar="JSON",
    help="Namespaced data for the record (redkey.*, a2a.*, or a reverse domain), as a JSON object.",
)

_RETRY_NAMES = ("attempts", "delay", "backoff", "jitter", "longest")
_RETRY_FIELDS = ("maxAttempts", "delaySeconds", "backoff", "jitter", "longestDelaySeconds")
_RETRY = dict(zip(_RETRY_NAMES, _RETRY_FIELDS, strict=True))


def retry_value(text: str) -> dict[str, float]:
    """Parse a retry policy: `attempts=3,delay=10,backoff=2,jitter=0.1,longest=600`, each at most once."""
    stated: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = part.strip().partition("=")
        try:
            value = int(number) if name == "attempts" else float(number)
        except ValueError:
            value = -1
        if name not in _RETRY or _RETRY[name] in stated or value < 0:
            known = ", ".join(_RETRY)
            raise click.BadParameter(
                f"{part.strip()!r} is not NAME=NUMBER with one of {known}, as in attempts=3,delay=10"
            )
        stated[_RETRY[name]] = value
    return stated


def _decoded(data: bytes, name: str) -> Any:
    try:
        return decode_document(data, _LIMIT)
    except JsonRefused as refused:
        raise click.BadParameter(f"{name}: {refused.message} [{refused.code}]") from refused
