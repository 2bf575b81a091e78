"""The requests of A2A clients as structs, with the JSON names of the protocol.

Unknown fields are ignored, as the protocol requires; null means absent.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

MAX_PAGE = 100
_Id = Annotated[str, Meta(max_length=255)]


class _Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all requests and their parts."""


class Part(_Request, frozen=True, kw_only=True):
    """One piece of a message: exactly one of text, raw, url and data."""

    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: Any | UnsetType = UNSET
    metadata: dict[str, Any] | None = None
    filename: Annotated[str, Meta(max_length=255)] | None = None
    media_type: Annotated[str, Meta(max_length=127)] | None = None


class Message(_Request, frozen=True, kw_only=True):
    """A message from a client."""

    message_id: Annotated[str, Meta(min_length=1, max_length=255)]
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    parts: Annotated[tuple[Part, ...], Meta(min_length=1, max_length=64)]
    context_id: _Id | None = None
    task_id: _Id | None = None
    metadata: dict[str, Any] | None = None
    extensions: Annotated[tuple[str, ...], Meta(max_length=32)] | None = None
    reference_task_ids: Annotated[tuple[_Id, ...], Meta(max_length=32)] | None = None


class Authentication(_Request, frozen=True, kw_only=True):
    """How a notification authenticates itself to its receiver."""

    scheme: Annotated[str, Meta(min_length=1, max_length=64)]
    credentials: Annotated[str, Meta(max_length=4096)] | None = None


class PushConfig(_Request, frozen=True, kw_only=True):
    """Where the updates of a task are sent."""

    tenant: _Id | None = None
    id: _Id | None = None
    task_id: _Id | None = None
    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    token: Annotated[str, Meta(max_length=4096)] | None = None
    authentication: Authentication | None = None


class Configuration(_Request, frozen=True, kw_only=True):
    """How a client wants its message answered."""

    accepted_output_modes: Annotated[tuple[str, ...], Meta(max_length=32)] | None = None
    task_push_notification_config: PushConfig | None = None
    history_length: int | None = None
    return_immediately: bool | None = None


class SendMessage(_Request, frozen=True, kw_only=True):
    """Create a task, or continue one."""

    message: Message
    tenant: _Id | None = None
    configuration: Configuration | None = None
    metadata: dict[str, Any] | None = None


class GetTask(_Request, frozen=True, kw_only=True):
    """Get one task."""

    id: _Id
    tenant: _Id | None = None
    history_length: int | None = None


class ListTasks(_Request, frozen=True, kw_only=True):
    """List tasks, newest status first."""

    tenant: _Id | None = None
    context_id: _Id | None = None
    status: str | None = None
    page_size: int | None = None
    page_token: _Id | None = None
    history_length: int | None = None
    status_timestamp_after: str | None = None
    include_artifacts: bool | None = None


class NamedTask(_Request, frozen=True, kw_only=True):
    """Cancel or follow a task."""

    id: _Id
    tenant: _Id | None = None
    metadata: dict[str, Any] | None = None


class NamedConfig(_Request, frozen=True, kw_only=True):
    """Get or delete one push notification config of a task."""

    task_id: _Id
    id: Annotated[str, Meta(min_length=1, max_length=255)]
    tenant: _Id | None = None


class ListConfigs(_Request, frozen=True, kw_only=True):
    """List the push notification configs of a task."""

    task_id: _Id
    tenant: _Id | None = None
    page_size: int | None = None
    page_token: _Id | None = None


class Nothing(_Request, frozen=True, kw_only=True):
    """A request without parameters."""

    tenant: _Id | None = None
