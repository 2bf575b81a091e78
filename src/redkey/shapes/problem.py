"""Problems: why a request was refused (RFC 9457)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from redkey.errors import ApiError, Finding, api_error_type
from redkey.shapes.fields import Reply, one_of


class Wrong(msgspec.Struct, frozen=True, rename="camel"):
    """One error of a request: where (a JSON pointer into the body, or a parameter's name) and what."""

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
        """The error that the SDK raises for it: for one part of a batch, the same as for a single request."""
        errors = [Finding(wrong.code, wrong.pointer, wrong.message) for wrong in self.errors]
        kind = api_error_type(self.status, self.code)
        return kind(self.status, self.code, self.detail, advice=self.advice, errors=errors)


class Accepted(Reply, frozen=True, kw_only=True):
    """A request that has its place in the order, told to a caller that does not wait for what it did."""

    status: Annotated[str, one_of("accepted")]
    event_id: str


class NextStep(Reply, frozen=True, kw_only=True):
    """The next step: one action, and its subject."""

    action: str
    queue_id: str = ""
    role_id: str = ""
    agent_id: str = ""
    task_id: str = ""
    detail: str = ""
