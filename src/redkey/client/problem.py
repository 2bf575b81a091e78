"""Problems: turn an error response into an exception, by its code."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from redkey.errors import ApiError, Finding, api_error_type


class _Wrong(msgspec.Struct, frozen=True):
    code: str = ""
    pointer: str = ""
    # The name of the pointer in the findings of a plan's validation.
    path: str = ""
    message: str = ""


class _Problem(msgspec.Struct, frozen=True):
    """A problem as in RFC 9457, or RFC 6749 section 5.2 for token requests."""

    code: str = ""
    detail: str = ""
    title: str = ""
    advice: str = ""
    errors: tuple[_Wrong, ...] = ()
    error: str = ""
    error_description: str = ""


def error_of(status: int, headers: Mapping[str, str], body: bytes, origin: str = "") -> ApiError:
    """Return the exception for an error response, which may also come from a proxy."""
    problem = _read(body)
    code = problem.code or problem.error or f"http_{status}"
    return api_error_type(status, code)(
        status,
        code,
        _detail(problem) or f"The server answered {status}.",
        advice=problem.advice,
        errors=[Finding(one.code, one.pointer or one.path, one.message) for one in problem.errors],
        request_id=headers.get("x-request-id", ""),
        retry_after_seconds=retry_after(headers.get("retry-after")),
        # The key is named only where the key is the reason.
        origin=origin if status in (401, 403) else "",
    )


def _detail(problem: _Problem) -> str:
    # The bus sends its code, and under `error` a text, such as the address of the server that hosts the session.
    words = problem.error if problem.code else ""
    return problem.detail or problem.error_description or problem.title or words


def _read(body: bytes) -> _Problem:
    try:
        return msgspec.json.decode(body, type=_Problem)
    except msgspec.DecodeError:
        return _Problem()


def retry_after(text: str | None) -> float | None:
    """Return the seconds of a `Retry-After` header, given as a number or an HTTP date; None if it is neither."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    # Imported here, because dates are rare and the import is slow.
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
