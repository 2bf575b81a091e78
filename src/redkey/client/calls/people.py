"""People of a workspace: invited by e-mail address, they log in by OAuth with a one-time code or an identity provider.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""

from __future__ import annotations

from collections.abc import Sequence

from redkey.client.operation import Listing, Mode, Operation, Resource
from redkey.client.request import Request, at, delete, get, post
from redkey.shapes.fields import Page
from redkey.shapes.people import EndedSession, InvitedPerson, Person, PersonScope, RemovedPerson


class People(Resource[Mode]):
    """People of a workspace: invited by e-mail address, they log in by OAuth with a one-time code or an identity
    provider.
    """

    @Operation
    def invite(
        self, workspace_id: str, email: str, *, scopes: Sequence[PersonScope] | None = None, name: str | None = None
    ) -> Request[InvitedPerson]:
        """Invite a person by e-mail address; the one-time code is shown once."""
        return post(at("workspaces", workspace_id, "people"), InvitedPerson, email=email, scopes=scopes, name=name)

    @Listing
    def list(self, workspace_id: str, *, limit: int | None = None, after: str | None = None) -> Request[Page[Person]]:
        """List the people of a workspace with their sessions."""
        return get(at("workspaces", workspace_id, "people"), Page[Person], limit=limit, after=after)

    @Operation
    def code(self, workspace_id: str, person_id: str) -> Request[InvitedPerson]:
        """Create a new one-time code for a person; the previous one becomes invalid."""
        return post(at("workspaces", workspace_id, "people", person_id, "codes"), InvitedPerson)

    @Operation
    def end_session(self, workspace_id: str, person_id: str, session_id: str) -> Request[EndedSession]:
        """End one session of a person; its tokens end at once."""
        return delete(at("workspaces", workspace_id, "people", person_id, "sessions", session_id), EndedSession)

    @Operation
    def remove(self, workspace_id: str, person_id: str) -> Request[RemovedPerson]:
        """Remove a person; all sessions end at once."""
        return delete(at("workspaces", workspace_id, "people", person_id), RemovedPerson)
