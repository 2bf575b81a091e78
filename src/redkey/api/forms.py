"""Forms (`application/x-www-form-urlencoded`): read whole, within a size limit, each parameter at most once."""

from __future__ import annotations

from urllib.parse import parse_qsl

from redkey.errors import RedKeyError
from redkey.http.exchange import Exchange
from redkey.http.request import chunks, declared_size
from redkey.shapes.oauth import FORM

_BYTES = 16 * 1024
_FIELDS = 24


class FormRefused(RedKeyError):
    """The form cannot be read."""

    code = "form_invalid"


async def read_form(exchange: Exchange) -> dict[str, str]:
    """Read the form of a request."""
    declared_size(exchange.headers, _BYTES)
    body = b"".join([chunk async for chunk in chunks(exchange.receive, _BYTES)])
    media = exchange.headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    if media != FORM:
        raise FormRefused(f"The body must be {FORM}.")
    return parameters(body)


def parameters(text: bytes) -> dict[str, str]:
    """Parse the parameters of a form or query; a repeated one is refused."""
    try:
        pairs = parse_qsl(text.decode(), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise FormRefused("The form cannot be read.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise FormRefused("A parameter is repeated; send each one once.")
    return fields
