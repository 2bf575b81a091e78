"""The payloads of `workspace.*` events.

Written by `python -m tools.events` from the schemas of Agent Wire 1.1; `make verify` proves it current.
"""

from __future__ import annotations

from typing import ClassVar, final

from redkey.wire.events.shared import Ref
from redkey.wire.payload import Payload, WirePart


@final
class WorkspaceCreated(Payload, frozen=True, kw_only=True):
    """A workspace exists; its records fold under these rules."""

    TYPE: ClassVar[str] = "workspace.created"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    name_ref: Ref | None = None
    rules: int
    workspace_id: str | None = None


@final
class WorkspaceRulesRaised(Payload, frozen=True, kw_only=True):
    """Later records fold under newer rules."""

    TYPE: ClassVar[str] = "workspace.rules_raised"
    KEYED: ClassVar[bool] = True

    body: str | None = None
    idem: str | None = None
    rules: int
    workspace_id: str | None = None


class WorkspaceBlockRoute(WirePart, frozen=True, kw_only=True):
    """The `block_route` of workspace events."""

    blocker_type: str
    roles: tuple[str, ...]


@final
class WorkspacePolicySet(Payload, frozen=True, kw_only=True):
    """What the workspace decides for itself: from here on blocks of one type go to the active holders of these
    roles.
    """

    TYPE: ClassVar[str] = "workspace.policy_set"
    KEYED: ClassVar[bool] = True

    block_route: WorkspaceBlockRoute
    body: str | None = None
    idem: str | None = None
    workspace_id: str | None = None
