"""Signup: a workspace for anyone, where the operator of the server allows it."""

from __future__ import annotations

from redkey.commands.actor import Actor
from redkey.commands.decision import Refused
from redkey.services.caller import Caller
from redkey.services.use_case import use_case
from redkey.services.use_cases.new_key import new_key
from redkey.services.use_cases.new_workspace import found_workspace
from redkey.services.use_cases.texts import keep
from redkey.services.workspaces import Founding, first_policy
from redkey.shapes import signup
from redkey.shapes.signup import NewSignup, SignedUp
from redkey.wire.ids import event_id


@use_case(signup.SIGN_UP)
async def sign_up(caller: Caller, new: NewSignup) -> SignedUp:
    """Create a workspace with an admin key and starting credits."""
    means = caller.means
    if not means.config.signup.enabled:
        detail = "This server does not allow signup; ask its operator for a workspace."
        raise Refused(403, "signup_disabled", detail)
    means.signups.take(caller.address)
    key = new_key(caller, ("admin",))
    name = keep(caller, {"name": new.name})[1] if new.name is not None else None
    founding = Founding(
        founder=Actor("", key.key_id, frozenset(key.scopes)),
        key=key,
        name=name,
        policy=first_policy(means.config),
        self_approval=True,
        credits=means.config.signup.credits,
    )
    begun = await found_workspace(caller, founding)
    return SignedUp(
        workspace_id=begun.workspace_id,
        key_id=begun.key_id,
        api_key=means.keys.text(begun.key_id),
        credits=means.config.signup.credits,
        event_id=event_id(begun.records[0].event.wire_id),
    )
