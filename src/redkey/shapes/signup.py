"""Signup: anyone may create a workspace, if the operator of the server allows it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from redkey.shapes.fields import Body, Identified, Name, SecretReply
from redkey.shapes.operation import Operation


class NewSignup(Body, frozen=True, kw_only=True):
    """A workspace to create. The request contains nothing about the person, so it reveals nothing about others."""

    name: Annotated[Name, Meta(description="A name of the workspace.")] | None = None


class SignedUp(SecretReply, Identified, frozen=True, kw_only=True):
    """A new workspace with its admin key, which is shown only here, and its credits."""

    SPECIFIC: ClassVar[str] = "workspace_id"
    workspace_id: str
    key_id: str
    api_key: str
    credits: int
    event_id: str


SIGN_UP = Operation(
    "sign_up",
    "POST",
    "/signup",
    body=NewSignup,
    reply=SignedUp,
    status=201,
    summary="Create a workspace of your own, with an admin key and starting credits.",
    description="Create a workspace of your own, with an admin key and starting credits, where the server allows it.",
    replies={403: "This server does not allow signup.", 429: "Too many workspaces were created."},
    # A caller without an account has no key space of its own: a repeated request creates another workspace.
    idempotent=False,
    example={"name": "Podcast"},
    reply_example={
        "workspaceId": "wk_01JTMX9A2B3C4D5E6F7G8H9JKR",
        "keyId": "key_01JTMX9A2B3C4D5E6F7G8H9JKS",
        "apiKey": "rk_5E6F7G8H9JKS4D5E_…",
        "credits": 1000,
        "eventId": "evt_01JTMX9A2B3C4D5E6F7G8H9JKM",
    },
    method_name="signup.create",
)
