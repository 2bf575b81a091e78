"""People of a workspace: invited by e-mail address, they log in by OAuth with a one-time code or an identity provider.

A person is a key on the ledger whose secret is never shown; `personId` is the id of that key, and the person's acts are
recorded with it as the sender.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from redkey.shapes.fields import Body, Identified, Name, Page, PageQuery, Reply, SecretReply, one_of
from redkey.shapes.operation import ADMIN, OPERATOR, Operation

PersonScope = Literal["operator", "admin", "produce", "runner", "read"]
Address = Annotated[str, Meta(min_length=3, max_length=254, description="The e-mail address.")]


class NewPerson(Body, frozen=True, kw_only=True):
    """A person to invite."""

    email: Address
    scopes: Annotated[tuple[PersonScope, ...], Meta(min_length=1, max_length=5, description="What they may do.")] = (
        "produce",
    )
    name: Annotated[Name, Meta(description="The name of the person.")] | None = None


class LoginSession(Identified, frozen=True, kw_only=True):
    """A login of a person from one client."""

    SPECIFIC: ClassVar[str] = "session_id"
    session_id: str
    client_name: str
    scopes: tuple[str, ...]
    created_at: str
    used_at: str


class Person(Identified, frozen=True, kw_only=True):
    """A person in a list."""

    SPECIFIC: ClassVar[str] = "person_id"
    person_id: str
    email: str | None
    name: str | None
    scopes: tuple[str, ...]
    created_at: str
    revoked_at: str | None
    last_login_at: str | None
    sessions: tuple[LoginSession, ...] = ()


class InvitedPerson(SecretReply, Identified, frozen=True, kw_only=True):
    """A person with a one-time code, which is shown only here.

    `delivery` says whether the server mails it; if not, send it yourself.
    """

    SPECIFIC: ClassVar[str] = "person_id"
    person_id: str
    login_code: str
    expires_at: str
    delivery: Annotated[str, one_of("by_mail", "by_hand")]
    event_id: str = ""


class RemovedPerson(Reply, frozen=True, kw_only=True):
    """A person who can no longer log in."""

    person_id: str
    status: Annotated[str, one_of("removed")]
    event_id: str


class EndedSession(Reply, frozen=True, kw_only=True):
    """A session that was ended."""

    session_id: str
    status: Annotated[str, one_of("ended")]


_WORKSPACE = "/workspaces/{workspace_id}/people"
_PERSON_ID = "key_01JTMX9A2B3C4D5E6F7G8H9JKS"
_EVENT_ID = "evt_01JTMX9A2B3C4D5E6F7G8H9JKM"
_TIME = "2026-05-07T18:15:00.000000001Z"
_INVITED = {
    "personId": _PERSON_ID,
    "loginCode": "7Q2M-4XWD-9TRA",
    "expiresAt": "2026-05-10T18:15:00.000000001Z",
    "delivery": "by_hand",
    "eventId": _EVENT_ID,
}

INVITE_PERSON = Operation(
    "invite_person",
    "POST",
    _WORKSPACE,
    (*ADMIN, *OPERATOR),
    body=NewPerson,
    reply=InvitedPerson,
    status=201,
    summary="Invite a person by e-mail address; the one-time code is shown once.",
    replies={409: "The address is already invited to this workspace."},
    example={"email": "ada@example.com", "scopes": ["produce"], "name": "Ada"},
    reply_example=_INVITED,
    method_name="people.invite",
    positional=("email",),
    command="person invite EMAIL",
)
LIST_PEOPLE = Operation(
    "list_people",
    "GET",
    _WORKSPACE,
    (*ADMIN, *OPERATOR),
    query=PageQuery,
    reply=Page[Person],
    summary="List the people of a workspace with their sessions.",
    reply_example={
        "items": [
            {
                "personId": _PERSON_ID,
                "email": "ada@example.com",
                "name": "Ada",
                "scopes": ["produce"],
                "createdAt": _TIME,
                "revokedAt": None,
                "lastLoginAt": None,
            }
        ],
        "next": None,
    },
    method_name="people.list",
    command="person list",
)
CREATE_PERSON_CODE = Operation(
    "create_person_code",
    "POST",
    f"{_WORKSPACE}/{{person_id}}/codes",
    (*ADMIN, *OPERATOR),
    reply=InvitedPerson,
    status=201,
    summary="Create a new one-time code for a person; the previous one becomes invalid.",
    idempotent=False,
    reply_example={name: value for name, value in _INVITED.items() if name != "eventId"},
    method_name="people.code",
    command="person code PERSON",
)
END_PERSON_SESSION = Operation(
    "end_person_session",
    "DELETE",
    f"{_WORKSPACE}/{{person_id}}/sessions/{{session_id}}",
    (*ADMIN, *OPERATOR),
    reply=EndedSession,
    summary="End one session of a person; its tokens end at once.",
    idempotent=False,
    reply_example={"sessionId": "01JTMX9A2B3C4D5E6F7G8H9JKT", "status": "ended"},
    method_name="people.end_session",
    command="person end-session PERSON SESSION",
)
REMOVE_PERSON = Operation(
    "remove_person",
    "DELETE",
    f"{_WORKSPACE}/{{person_id}}",
    (*ADMIN, *OPERATOR),
    reply=RemovedPerson,
    summary="Remove a person; all sessions end at once.",
    reply_example={"personId": _PERSON_ID, "status": "removed", "eventId": _EVENT_ID},
    method_name="people.remove",
    command="person remove PERSON",
)

OPERATIONS = (INVITE_PERSON, LIST_PEOPLE, CREATE_PERSON_CODE, END_PERSON_SESSION, REMOVE_PERSON)
