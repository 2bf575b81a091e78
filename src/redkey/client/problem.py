"""Problems: what an answer that is no success means, as an error by its code."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from redkey.errors import ApiError, Finding, api_error_type


class _Wrong(msgspec.Struct, frozen=True):
    code: str = ""
    pointer: str = ""
    # What a plan's validation calls its pointer.
    path: str = ""
    message: str = ""


class _Problem(msgspec.Struct, frozen=True):
    """RFC 9457, and RFC 6749 section 5.2 where tokens are asked for."""

    code: str = ""
    detail: str = ""
    title: str = ""
    advice: str = ""
    errors: tuple[_Wrong, ...] = ()
    error: str = ""
    error_description: str = ""


def error_of(status: int, headers: Mapping[str, str], body: bytes, origin: str = "") -> ApiError:
    """The error that an answer is; it need not come from RedKey: proxies answer too."""
    problem = _read(body)
    code = problem.code or problem.error or f"http_{status}"
    return api_error_type(status, code)(
        status,
        code,
        problem.detail or problem.error_description or problem.title or f"The server answered {status}.",
        advice=problem.advice,
        errors=[Finding(one.code, one.pointer or one.path, one.message) for one in problem.errors],
        request_id=headers.get("x-request-id", ""),
        retry_after_seconds=retry_after(headers.get("retry-after")),
        # Which key it was matters only where the key is the reason.
        origin=origin if status in (401, 403) else "",
    )


def _read(body: bytes) -> _Problem:
    try:
        return msgspec.json.decode(body, type=_Problem)
    except msgspec.DecodeError:
        return _Problem()


def retry_after(text: str | None) -> float | None:
    """The seconds that a `Retry-After` header asks for, as a number or a date of HTTP; None when it says neither."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    # Dates are rare here, and to import what reads them is dear.
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
