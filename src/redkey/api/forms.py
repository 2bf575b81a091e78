"""Forms (`application/x-www-form-urlencoded`): read whole, within a bound, each parameter once."""

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
    """Read the parameters of a form or a query; a repeated one is refused."""
    try:
        pairs = parse_qsl(text.decode(), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise FormRefused("The form cannot be read.") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FormRefused("A parameter is given twice.")
    return found
