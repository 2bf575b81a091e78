"""`redkey person`: people who log in, with a one-time code or an identity provider."""

from __future__ import annotations

from redkey.cli.declared import declared_group
from redkey.cli.look import Look
from redkey.shapes.people import InvitedPerson


def _invited(reply: InvitedPerson) -> str:
    sent = "It was sent to the address." if reply.delivery == "by_mail" else "Hand it over; it is not shown again."
    return f"{reply.person_id}\n\n  one-time code {reply.login_code}\n\n{sent} The person logs in with: redkey login"


command = declared_group(
    "person",
    "Invite people who log in, see their sessions, and remove them.",
    {
        "invite": Look(
            told=_invited,
            examples=(
                "redkey person invite ada@example.com",
                "redkey person invite ada@example.com --scope admin --name Ada",
            ),
        ),
        "code": Look(told=_invited),
        "list": Look(
            parts={
                "PERSON": "person_id",
                "EMAIL": "email",
                "NAME": "name",
                "STATE": lambda person: "removed" if person.revoked_at else "active",
                "SCOPES": "scopes",
                "LAST LOGIN": lambda person: person.last_login_at or "never",
                "SESSIONS": lambda person: len(person.sessions),
            },
            empty="no people yet: redkey person invite EMAIL",
        ),
        "end-session": Look(told="{session_id} has ended"),
        "remove": Look(told="{person_id} cannot log in any more"),
    },
)
