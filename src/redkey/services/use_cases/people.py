"""People of a workspace: invited, listed with their sessions, given new codes, removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from redkey.commands.decision import Refused, not_found
from redkey.commands.registry import RevokeKey
from redkey.ledger.ports import Unit
from redkey.ledger.record import iso_time
from redkey.readmodel.rows import entity
from redkey.readmodel.view import moment, read_document
from redkey.reducers.entities import Key
from redkey.services.caller import Caller, Pending
from redkey.services.outcome import Outcome
from redkey.services.people import (
    PLACES_LIMIT,
    PersonPlace,
    StoredLogin,
    add_place,
    address_digest,
    code_text,
    logins_of,
    normal_address,
    put_login,
    read_login,
)
from redkey.services.place import Place
from redkey.services.sessions import SECOND, find, is_live, without
from redkey.services.use_case import use_case
from redkey.services.use_cases.new_key import new_key
from redkey.services.use_cases.pages import place_after
from redkey.services.use_cases.texts import keep
from redkey.services.use_cases.workspaces import workspace_topic
from redkey.shapes import people
from redkey.shapes.fields import Page, PageQuery
from redkey.shapes.people import EndedSession, InvitedPerson, LoginSession, NewPerson, Person, RemovedPerson
from redkey.wire.events import KeyCreated, KeyRevoked

_HOUR = 3600 * SECOND


@use_case(people.INVITE_PERSON)
async def invite_person(caller: Caller, workspace_id: str, new: NewPerson) -> InvitedPerson:
    """Create a person who can log in with a one-time code.

    A crash after the record leaves a person without a code; the repeated request, or a new code, adds it.
    """
    topic, means = workspace_topic(caller, workspace_id), caller.means
    address = normal_address(new.email)
    if not address:
        raise Refused(422, "address_invalid", "This is not an e-mail address.", "/email")
    if "operator" in new.scopes and "operator" not in caller.actor.scopes:
        raise Refused(403, "insufficient_scope", "Only an operator invites operators.")
    if len(set(new.scopes)) != len(new.scopes):
        raise Refused(422, "scope_repeated", "A scope is named twice.", "/scopes")
    digest = address_digest(means.keys, address)
    repeated = caller.is_repeat
    if not repeated and any(found == topic for found, _ in logins_of(means.store, digest)):
        detail = "This address is invited to the workspace already; create a new code for it."
        raise Refused(409, "person_exists", detail, "/email")
    ref, content = keep(caller, {"email": address} | ({"name": new.name} if new.name is not None else {}))
    command = msgspec.structs.replace(new_key(caller, new.scopes, name=ref), person=True)
    outcome = await caller.settled(Pending(command, _outcome, (content,), topic=topic))
    key_id, created_at = outcome.payload(KeyCreated).key_id, outcome.records[0].timestamp
    ends_at = created_at + means.config.login.code_hours * _HOUR
    login = await _admit(caller, topic, key_id, address)
    if not login.code:
        await means.coordinator.act(topic, lambda unit: _set_code(unit, topic, login, 1, ends_at))
    return _invited(caller, key_id, "" if repeated else address, 1, ends_at, outcome.event_id)


@use_case(people.CREATE_PERSON_CODE)
async def create_person_code(caller: Caller, workspace_id: str, person_id: str) -> InvitedPerson:
    """Create a new one-time code; the one before it ends."""
    topic = workspace_topic(caller, workspace_id)
    key = _live_person(caller, topic, person_id)
    address = _text_of(caller, topic, key).get("email", "")
    if not address:
        raise Refused(409, "address_erased", "The e-mail address was erased; remove the person and invite them again.")
    login = await _admit(caller, topic, person_id, address)
    number, ends_at = await new_code(caller, topic, login)
    return _invited(caller, person_id, address, number, ends_at, "")


@use_case(people.LIST_PEOPLE)
def list_people(caller: Caller, workspace_id: str, asked: PageQuery) -> Page[Person]:
    """List people with their sessions, in the order they were invited."""
    topic, store = workspace_topic(caller, workspace_id), caller.means.store
    rows = store.rows(topic, "key", "person", place_after(asked), asked.limit)
    following = f"{rows[-1].position}.{rows[-1].key}" if len(rows) == asked.limit else None
    return Page(tuple(_view(caller, topic, entity(row)) for row in rows), following)


@use_case(people.END_PERSON_SESSION)
async def end_person_session(caller: Caller, workspace_id: str, person_id: str, session_id: str) -> EndedSession:
    """End one session of a person."""
    topic = workspace_topic(caller, workspace_id)
    _live_person(caller, topic, person_id)
    if not await end_session(caller, topic, person_id, session_id):
        raise not_found("session")
    return EndedSession(session_id=session_id, status="ended")


@use_case(people.REMOVE_PERSON)
def remove_person(caller: Caller, workspace_id: str, person_id: str) -> Pending[RemovedPerson]:
    """Remove a person, at once and for good, with all sessions."""
    topic = workspace_topic(caller, workspace_id)
    if not caller.is_repeat:
        _live_person(caller, topic, person_id)

    def reply(outcome: Outcome, place: Place) -> RemovedPerson:
        removed = outcome.payload(KeyRevoked)
        return RemovedPerson(person_id=removed.key_id, status="removed", event_id=outcome.event_id)

    return Pending(RevokeKey(person_id), reply, topic=topic)


async def new_code(caller: Caller, topic: str, login: StoredLogin) -> tuple[int, int]:
    """Give a person the next one-time code: its number, and when it ends."""
    lifetime = caller.means.config.login.code_hours * _HOUR

    def work(unit: Unit) -> tuple[int, int]:
        stored = read_login(unit, topic, login.key_id)
        current = stored if stored is not None and stored.address == login.address else login
        number, ends_at = current.code + 1, unit.next_timestamp(topic) + lifetime
        _set_code(unit, topic, current, number, ends_at)
        return number, ends_at

    return await caller.means.coordinator.act(topic, work)


async def end_session(caller: Caller, topic: str, key_id: str, session_id: str) -> bool:
    """End a session and what it holds open; False if there is none."""

    def work(unit: Unit) -> bool:
        login = read_login(unit, topic, key_id)
        if login is None or find(login.sessions, session_id) is None:
            return False
        put_login(unit, topic, msgspec.structs.replace(login, sessions=without(login.sessions, session_id)))
        return True

    ended = await caller.means.coordinator.act(topic, work)
    caller.means.live_sessions.forget(session_id)
    caller.means.authority.end_session(topic, session_id)
    return ended


def mail_code(caller: Caller, address: str, code: str) -> None:
    """Send a one-time code to its address, if the server can send mail."""
    url, hours = caller.means.config.public_url, caller.means.config.login.code_hours
    text = (
        f"Your code for RedKey at {url} is\n\n    {code}\n\nIt is valid once, for {hours} hours, together with this "
        "e-mail address. If you did not ask for it, ignore this message.\n"
    )
    caller.means.mail.post(address, "Your RedKey login code", text)


async def _admit(caller: Caller, topic: str, key_id: str, address: str) -> StoredLogin:
    """Make a person findable by the address, and return how the person logs in."""
    means = caller.means
    digest = address_digest(means.keys, address)
    place = PersonPlace(topic, key_id)
    if not await means.coordinator.act_on_store(lambda unit: add_place(unit, digest, place)):
        detail = f"This address is invited to {PLACES_LIMIT} workspaces of this server, which is the most."
        raise Refused(409, "address_limit", detail)
    login = read_login(means.store, topic, key_id) or StoredLogin(key_id, key_id[-16:], digest)
    # A data directory restored without its keys has new hashes; the old tokens are not valid any more.
    return login if login.address == digest else StoredLogin(key_id, login.public_id, digest, code=login.code)


def _set_code(unit: Unit, topic: str, login: StoredLogin, number: int, ends_at: int) -> None:
    put_login(unit, topic, msgspec.structs.replace(login, code=number, code_ends_at=ends_at))


def _invited(caller: Caller, key_id: str, address: str, number: int, ends_at: int, event_id: str) -> InvitedPerson:
    """Show a code, and send it to an address; a repeated request has sent it before."""
    code = code_text(caller.means.keys, key_id, number)
    if address:
        mail_code(caller, address, code)
    return InvitedPerson(
        person_id=key_id,
        login_code=code,
        expires_at=iso_time(ends_at),
        delivery="by_mail" if caller.means.mail.is_on else "by_hand",
        event_id=event_id,
    )


def _live_person(caller: Caller, topic: str, person_id: str) -> Key:
    row = caller.means.store.row(topic, "key", person_id)
    key: Key | None = entity(row) if row is not None else None
    if key is None or not key.person or key.revoked_at:
        raise not_found("person")
    return key


def _text_of(caller: Caller, topic: str, key: Key) -> Mapping[str, Any]:
    """Return name and e-mail address; nothing if they were erased."""
    return read_document(caller.means.store, topic, key.name_sha256) or {}


def _view(caller: Caller, topic: str, key: Key) -> Person:
    login, now = read_login(caller.means.store, topic, key.key_id), caller.means.clock.wall()
    text = _text_of(caller, topic, key)
    sessions = [one for one in login.sessions if one.number and is_live(one, now)] if login is not None else []
    return Person(
        person_id=key.key_id,
        email=text.get("email"),
        name=text.get("name"),
        scopes=key.scopes,
        created_at=iso_time(key.created_at),
        revoked_at=moment(key.revoked_at),
        last_login_at=moment(login.last_login_at) if login is not None else None,
        sessions=tuple(
            LoginSession(
                session_id=one.session_id,
                client_name=one.client_name,
                scopes=one.scopes,
                created_at=iso_time(one.created_at),
                used_at=iso_time(one.used_at),
            )
            for one in sessions
        ),
    )


def _outcome(outcome: Outcome, place: Place) -> Outcome:
    return outcome
