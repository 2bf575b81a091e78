"""Documents from files and standard input: one JSON document, or JSON lines, checked one at a time.

A file is JSON lines if its name says so (`.jsonl`, `.ndjson`), or if its first line is a whole object and more follows.
Memory is bounded by one document: bytes beyond the size limit are refused and not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import click

from redkey.cli.report import Checked
from redkey.errors import Finding, JsonRefused
from redkey.wire.decode import SIZE_LIMIT, decode

# The type of arguments that name documents: a missing file is a usage error, not an invalid document.
FILE = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True)

contracts_option = click.option(
    "--contracts",
    "contracts_dirs",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A directory of output contracts of your own, beside those of RedKey.",
)

# What a check returns for a decoded document: its kind, in words, and the findings.
Check = Callable[[Any], tuple[str, Iterable[Finding]]]


def check_documents(paths: Iterable[str], check: Check, *, size_limit: int = SIZE_LIMIT) -> Iterator[Checked]:
    """Yield the result of `check` for every document; bytes that are not strict JSON become findings too."""
    for name, data in documents(paths, size_limit):
        try:
            kind, findings = check(decode_document(data, size_limit))
        except JsonRefused as refused:
            yield Checked(name, tuple(refused.findings()))
        else:
            yield Checked(name, tuple(findings), kind)


def decode_document(data: bytes, size_limit: int = SIZE_LIMIT) -> Any:
    """Parse the JSON value of one document. Reading stopped after the limit, so the true size is unknown."""
    if len(data) > size_limit:
        raise JsonRefused(f"more than {size_limit:,} bytes of JSON", code="json_too_large")
    return decode(data, size_limit=size_limit)


def documents(paths: Iterable[str], size_limit: int = SIZE_LIMIT) -> Iterator[tuple[str, bytes]]:
    """Yield each document as (name, bytes): the name is `file`, or `file:line` in JSON lines."""
    for path in paths:
        name = "stdin" if path == "-" else click.format_filename(path)
        try:
            with click.open_file(path, "rb") as stream:
                yield from _split(stream, name, size_limit + 1)
        except OSError as cause:
            raise click.UsageError(f"{name} cannot be read: {cause.strerror}") from cause


def _split(stream: IO[bytes], name: str, most: int) -> Iterator[tuple[str, bytes]]:
    """Yield at most `most` bytes of each document; that is one byte more than a document may have."""
    by_name = name.endswith((".jsonl", ".ndjson"))
    lines = _lines(stream, most)
    first = number, text = next(lines, (1, b""))
    if not by_name and not (text.startswith(b"{") and text.rstrip().endswith(b"}")):
        # Put the skipped blank lines back, so that errors name the right line.
        yield name, b"\n" * min(number - 1, most) + text + stream.read(most)
        return
    second = next(lines, None)
    if second is None and not by_name:
        yield name, text
        return
    for number, text in chain([first], [second] if second else [], lines):
        if text:
            yield f"{name}:{number}", text


def _lines(stream: IO[bytes], most: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank with their numbers, each cut at `most` bytes."""
    number = 0
    while line := stream.readline(most):
        number += 1
        if line.strip():
            yield number, line
        while len(line) == most and not line.endswith(b"\n"):
            line = stream.readline(most)
