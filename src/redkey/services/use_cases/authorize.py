"""The login of a person for a client: OAuth 2.0 authorization codes with PKCE (RFC 6749, 7636, 9700).

No state is kept between the pages. What a page needs later travels with it, sealed by this log; the authorization code
is token 0 of a new session (`services.sessions`). A client that cannot be trusted with an answer (unknown, or a
redirect URI that it has not registered) gets none: the person sees a page instead.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from redkey.commands.decision import Refused
from redkey.ledger.ports import Unit
from redkey.readmodel.rows import entity
from redkey.readmodel.workspace_view import workspace_view
from redkey.services.caller import Caller
from redkey.services.keys import SCOPES, passable
from redkey.services.oauth_clients import OAuthClient, find_client
from redkey.services.people import (
    StoredLogin,
    address_digest,
    code_text,
    is_code,
    logins_of,
    normal_address,
    put_login,
    read_login,
)
from redkey.services.sessions import SECOND, Session, added, challenge_of, client_digest, token_text
from redkey.services.use_cases.people import mail_code, new_code

# How long a person may take at the identity provider and on the page after it.
_SEALED_SECONDS = 600
_STATE_LENGTH = 1024
_CHALLENGE_LENGTH = 43

T = TypeVar("T")
# Returns the person's login after admission; None to refuse.
Admit = Callable[[int, StoredLogin], StoredLogin | None]


class AuthorizationRequest(msgspec.Struct, frozen=True):
    """What a client asks for, checked; `scopes` is empty for all that the person has."""

    client_id: str
    client_name: str
    redirect_uri: str
    challenge: str
    scopes: tuple[str, ...] = ()
    state: str = ""


class ProviderLogin(msgspec.Struct, frozen=True):
    """A person as the identity provider names them: who they are here, by the topic and key of each workspace."""

    request: AuthorizationRequest
    email: str
    identity: str
    places: tuple[tuple[str, str], ...]


class _Began(msgspec.Struct, frozen=True):
    """A login that is at the identity provider; `browser` is the challenge of the cookie."""

    request: AuthorizationRequest
    browser: str


class _Sealed(msgspec.Struct, frozen=True):
    ends_at: int
    value: msgspec.Raw


class ClientFailed(Refused):
    """The request of a trusted client cannot be granted: the client learns it by a redirect."""

    def __init__(self, error: str, description: str, redirect_uri: str, state: str) -> None:
        super().__init__(400, error, description)
        self.redirect_uri, self.state = redirect_uri, state


def read_request(caller: Caller, asked: Mapping[str, str]) -> AuthorizationRequest:
    """Check the parameters of a request. Refused: only the person may see the error; ClientFailed: the client may."""
    means = caller.means
    client = find_client(means.keys, means.config.public_url, asked.get("client_id", ""))
    if client is None:
        raise Refused(400, "client_unknown", "The program that sent you here is not registered with this server.")
    redirect_uri = _redirect_uri(client, asked.get("redirect_uri", ""))
    state = asked.get("state", "")
    if len(state) > _STATE_LENGTH:
        raise ClientFailed("invalid_request", f"state has at most {_STATE_LENGTH} characters.", redirect_uri, "")
    if asked.get("response_type") != "code":
        raise ClientFailed("unsupported_response_type", "response_type must be code.", redirect_uri, state)
    challenge = asked.get("code_challenge", "")
    if asked.get("code_challenge_method") != "S256" or len(challenge) != _CHALLENGE_LENGTH:
        raise ClientFailed("invalid_request", "PKCE is required, with S256.", redirect_uri, state)
    check_resource(caller, asked.get("resource", ""), redirect_uri, state)
    scopes = tuple(asked.get("scope", "").split())
    if not set(scopes) <= set(SCOPES):
        raise ClientFailed("invalid_scope", f"Scopes are {' '.join(SCOPES)}.", redirect_uri, state)
    return AuthorizationRequest(client.client_id, client.name, redirect_uri, challenge, scopes, state)


def check_resource(caller: Caller, resource: str, redirect_uri: str = "", state: str = "") -> None:
    """Refuse a token for another server (RFC 8707)."""
    base = caller.means.config.public_url
    if resource and resource.rstrip("/") not in (base, f"{base}/mcp"):
        raise ClientFailed("invalid_target", f"This server is {base}.", redirect_uri, state)


async def send_code(caller: Caller, typed: str) -> None:
    """Mail a code to everyone with this address; the reply does not show whether there is anyone."""
    means, address = caller.means, normal_address(typed)
    if not address or not means.mail.is_on:
        return
    for topic, login in list(logins_of(means.store, address_digest(means.keys, address))):
        # A code that is still valid is sent again, so that asking for one ends no other.
        is_good = means.clock.wall() < login.code_ends_at
        number = login.code if is_good else (await new_code(caller, topic, login))[0]
        mail_code(caller, address, code_text(means.keys, login.key_id, number))


async def log_in_with_code(caller: Caller, request: AuthorizationRequest, typed: str, code: str) -> str:
    """Log a person in by address and one-time code; return where the browser goes. Refused if they do not match."""
    means, address = caller.means, normal_address(typed)
    digest = address_digest(means.keys, address)

    for topic, login in list(logins_of(means.store, digest)):
        if is_code(means.keys, login, code, means.clock.wall()):

            def used(now: int, current: StoredLogin) -> StoredLogin | None:
                if not is_code(means.keys, current, code, now):
                    return None
                return msgspec.structs.replace(current, code_ends_at=0)

            return await _begin_session(caller, request, topic, login.key_id, used)
    raise Refused(401, "login_code_invalid", "The address and the code do not match, or the code was used or is old.")


def denied(request: AuthorizationRequest, issuer: str) -> str:
    """Return where the browser goes if the person refuses."""
    return answer_url(
        request.redirect_uri,
        {"error": "access_denied", "error_description": "The person refused."},
        request.state,
        issuer,
    )


def answer_url(redirect_uri: str, answer: Mapping[str, str], state: str, issuer: str) -> str:
    """Return a redirect URI with the result, the client's state, and the issuer (RFC 9207)."""
    query = {**answer, **({"state": state} if state else {}), "iss": issuer}
    return f"{redirect_uri}{'&' if urlsplit(redirect_uri).query else '?'}{urlencode(query)}"


async def begin_provider_login(caller: Caller, request: AuthorizationRequest) -> tuple[str, str]:
    """Send the browser to the identity provider: its URL there, and the cookie that binds the login to the browser."""
    browser = secrets.token_urlsafe(32)
    state = _seal(caller, "provider", _Began(request, challenge_of(browser)))
    url = await caller.means.identity_provider.login_url(state, _nonce(browser), challenge_of(browser))
    return url, browser


async def finish_provider_login(caller: Caller, state: str, code: str, browser: str) -> ProviderLogin:
    """Return who came back from the identity provider; Refused if it is not an invited person, or another browser."""
    began = _unseal(caller, "provider", state, _Began)
    if began is None or not caller.means.keys.same(began.browser, challenge_of(browser)):
        raise Refused(400, "login_expired", "This login has ended or was begun in another browser; start again.")
    means = caller.means
    found = await means.identity_provider.identity(code, browser, _nonce(browser))
    identity = means.keys.derived(f"identity/{found.issuer}\n{found.subject}").hex()[:32]
    digest = address_digest(means.keys, normal_address(found.email))
    people = [one for one in logins_of(means.store, digest) if one[1].identity in ("", identity)]
    if not people:
        raise Refused(403, "not_invited", f"{found.email} is not invited to this server; ask an admin.")
    places = tuple((topic, login.key_id) for topic, login in people)
    return ProviderLogin(began.request, found.email, identity, places)


def seal_login(caller: Caller, login: ProviderLogin, browser: str) -> str:
    """Return a login as a text that the consent page carries; it is valid in the same browser only."""
    return _seal(caller, f"consent/{challenge_of(browser)}", login)


def workspace_names(caller: Caller, login: ProviderLogin) -> list[tuple[str, str]]:
    """Return the workspaces that a person can choose from: key id and name."""
    store = caller.means.store
    rows = [(topic, key_id, store.row(topic, "workspace", "")) for topic, key_id in login.places]
    views = [(key_id, workspace_view(store, topic, entity(row))) for topic, key_id, row in rows if row is not None]
    return [(key_id, view.name or view.workspace_id) for key_id, view in views]


async def log_in_with_provider(caller: Caller, sealed: str, browser: str, key_id: str) -> str:
    """Log a person in who has come from the identity provider and agreed; return where the browser goes."""
    login = _unseal(caller, f"consent/{challenge_of(browser)}", sealed, ProviderLogin)
    topic = next((topic for topic, key in login.places if key == key_id), "") if login is not None else ""
    if login is None or not topic:
        raise Refused(400, "login_expired", "This login has ended or was begun in another browser; start again.")
    identity = login.identity

    def bound(now: int, current: StoredLogin) -> StoredLogin | None:
        # From the first login on, the identity counts: another one with the same address is refused.
        return msgspec.structs.replace(current, identity=identity) if current.identity in ("", identity) else None

    return await _begin_session(caller, login.request, topic, key_id, bound)


def sealed_request(caller: Caller, sealed: str, browser: str) -> AuthorizationRequest:
    """Return the request behind a consent page."""
    login = _unseal(caller, f"consent/{challenge_of(browser)}", sealed, ProviderLogin)
    if login is None:
        raise Refused(400, "login_expired", "This login has ended or was begun in another browser; start again.")
    return login.request


async def _begin_session(caller: Caller, request: AuthorizationRequest, topic: str, key_id: str, admit: Admit) -> str:
    """Create a session in the unit that uses up the person's admission; return the redirect with the code."""
    means, session_id = caller.means, caller.means.ids.ulid()
    lifetime = means.config.login.session_days * 86400 * SECOND

    def work(unit: Unit) -> StoredLogin | None:
        login, row, now = read_login(unit, topic, key_id), unit.row(topic, "key", key_id), unit.next_timestamp(topic)
        admitted = admit(now, login) if login is not None else None
        if admitted is None or row is None:
            return None
        scopes = _granted(entity(row).scopes, request)
        session = Session(
            session_id,
            client_digest(request.client_id),
            request.client_name,
            scopes,
            now,
            now,
            now + lifetime,
            redirect_uri=request.redirect_uri,
            challenge=request.challenge,
        )
        sessions = added(admitted.sessions, session, now)
        put_login(unit, topic, msgspec.structs.replace(admitted, sessions=sessions, last_login_at=now))
        return admitted

    login = await means.coordinator.act(topic, work)
    if login is None:
        raise Refused(401, "login_code_invalid", "The code was used a moment ago, or you were removed.")
    code = token_text(means.keys, login.public_id, session_id, 0)
    return answer_url(request.redirect_uri, {"code": code}, request.state, means.config.public_url)


def _granted(held: tuple[str, ...], request: AuthorizationRequest) -> tuple[str, ...]:
    """Return the scopes that were asked for and that the person may pass on; all of the person's if none were."""
    allowed = passable(held) & set(request.scopes) if request.scopes else set(held)
    if not allowed:
        raise ClientFailed("invalid_scope", "The person has none of these scopes.", request.redirect_uri, request.state)
    return tuple(scope for scope in SCOPES if scope in allowed)


def _redirect_uri(client: OAuthClient, asked: str) -> str:
    if not client.accepts(asked):
        detail = "The program that sent you here wants the answer at an address that it has not registered."
        raise Refused(400, "redirect_uri_mismatch", detail)
    return asked


def _nonce(browser: str) -> str:
    return challenge_of(f"nonce {browser}")


def _seal(caller: Caller, purpose: str, value: object) -> str:
    """Return a value as a text that only this log can have written, good for ten minutes."""
    ends_at = caller.means.clock.wall() + _SEALED_SECONDS * SECOND
    body = msgspec.json.encode(_Sealed(ends_at, msgspec.Raw(msgspec.json.encode(value))))
    text = urlsafe_b64encode(body).rstrip(b"=").decode()
    return f"{text}.{caller.means.keys.derived(f'seal/{purpose}/{text}').hex()}"


def _unseal(caller: Caller, purpose: str, sealed: str, kind: type[T]) -> T | None:
    text, _, proof = sealed.rpartition(".")
    if not caller.means.keys.same(proof, caller.means.keys.derived(f"seal/{purpose}/{text}").hex()):
        return None
    found = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Sealed)
    return msgspec.json.decode(found.value, type=kind) if caller.means.clock.wall() < found.ends_at else None
