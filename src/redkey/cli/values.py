"""Values on the command line: JSON as text, from a file, or from standard input."""

from __future__ import annotations

from typing import Any

import click

from redkey.cli.documents import decode_document
from redkey.errors import JsonRefused

_LIMIT = 16 * 1024 * 1024


class Json(click.ParamType):
    """JSON: the text itself, `@FILE`, or `-` for standard input."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        source = "-" if value == "-" else value.removeprefix("@") if value.startswith("@") else None
        try:
            return decode_document(_read(source) if source else value.encode(), _LIMIT)
        except OSError as cause:
            self.fail(f"{source} cannot be read: {cause.strerror}", param, ctx)
        except JsonRefused as refused:
            self.fail(f"{refused.message} [{refused.code}]", param, ctx)


def _read(source: str) -> bytes:
    with click.open_file(source, "rb") as stream:
        data: bytes = stream.read(_LIMIT + 1)
        return data


JSON = Json()
