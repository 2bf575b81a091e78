"""Replies: what every answer is, and what several families of operations answer with.

Fields that this SDK does not know are ignored, so that a newer server can be called; states are plain text for the same
reason.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from redkey.client.problem import error_of
from redkey.errors import ApiError
from redkey.shapes.fields import SecretReply as SecretReply

Item = TypeVar("Item")


class Reply(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """What the server answers: camelCase in JSON, snake_case here. Fields that this SDK does not know are ignored."""


class Page(msgspec.Struct, Generic[Item], frozen=True):
    """One page of a list; `next` is the cursor of the page that follows, None when there is none."""

    items: tuple[Item, ...]
    next: str | None = None


class NextStep(Reply, frozen=True, kw_only=True):
    """What to do now: one action, and what it is about."""

    action: str
    queue_id: str = ""
    role_id: str = ""
    agent_id: str = ""
    task_id: str = ""
    detail: str = ""


class Remark(Reply, frozen=True, kw_only=True):
    """One thing wrong with a request: where (a JSON pointer into the body, or a parameter's name) and what."""

    code: str
    pointer: str
    message: str


class Refusal(Reply, frozen=True, kw_only=True):
    """Why a request was refused, and what to do next."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    advice: str
    errors: tuple[Remark, ...] = ()

    @property
    def error(self) -> ApiError:
        """The same as what a call of its own would have raised."""
        return error_of(self.status, {}, msgspec.json.encode(self))
