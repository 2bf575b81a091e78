"""Problems: why a request was refused (RFC 9457)."""

from __future__ import annotations

import msgspec

from redkey.errors import ApiError, Finding, api_error_type
from redkey.shapes.fields import Reply


class Wrong(msgspec.Struct, frozen=True, rename="camel"):
    """One thing wrong with a request: where (a JSON pointer into the body, or a parameter's name) and what."""

    code: str
    pointer: str
    message: str


class Problem(msgspec.Struct, frozen=True, rename="camel"):
    """Why a request was refused, and what to do next."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    advice: str
    errors: tuple[Wrong, ...] = ()

    @property
    def error(self) -> ApiError:
        """The error that the SDK raises for it: what became of one part of a batch, as if it had been sent alone."""
        errors = [Finding(one.code, one.pointer, one.message) for one in self.errors]
        kind = api_error_type(self.status, self.code)
        return kind(self.status, self.code, self.detail, advice=self.advice, errors=errors)


class NextStep(Reply, frozen=True, kw_only=True):
    """What to do now: one action, and what it is about."""

    action: str
    queue_id: str = ""
    role_id: str = ""
    agent_id: str = ""
    task_id: str = ""
    detail: str = ""
