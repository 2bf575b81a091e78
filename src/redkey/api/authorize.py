"""The pages where people log in: `/oauth/authorize`, and `/oauth/callback` for those who come from a provider.

Plain HTML forms without script. The parameters of the client travel in hidden fields and are checked again each time.
There is no cookie but one: it binds a login at the identity provider to the browser that began it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

import structlog

from redkey.api.call import Raw, Services
from redkey.api.forms import FormRefused, parameters, read_form
from redkey.api.page import page
from redkey.commands.actor import Actor
from redkey.commands.decision import Refused
from redkey.errors import RedKeyError
from redkey.http import problems
from redkey.http.exchange import Exchange, header_lines
from redkey.http.problems import Declined
from redkey.http.security import SECURITY
from redkey.services.caller import Caller
from redkey.services.oauth_clients import origin_of
from redkey.services.use_cases import authorize as use_cases
from redkey.services.use_cases.authorize import AuthorizationRequest, ClientFailed
from redkey.shapes.workspaces import SCOPES

AUTHORIZE, CALLBACK = "/oauth/authorize", "/oauth/callback"
_COOKIE = "redkey_login"
_COOKIE_SECONDS = 600
# What a client sends; other parameters are ignored, as RFC 6749 wants it.
_PARAMETERS = (
    *("response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method"),
    "resource",
)
_log = structlog.get_logger("redkey.logins")
_NOBODY = Actor("", "", frozenset())


class AuthorizeDoor:
    """Answers browsers of people who log in."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._base = services.config.public_url

    async def __call__(self, exchange: Exchange) -> None:
        """Answer with a page or a redirect."""
        caller = Caller(self._services)
        caller.actor, caller.topic = _NOBODY, ""
        try:
            reply = await self._answer(exchange, caller)
        except ConnectionResetError:
            return
        except ClientFailed as failed:
            answer = {"error": failed.code, "error_description": failed.message}
            reply = _redirect(use_cases.answer_url(failed.redirect_uri, answer, failed.state, self._base))
        except (Refused, FormRefused) as refused:
            reply = _problem_page(refused)
        except Exception as error:
            _log.error("a login failed", path=exchange.path, exc_info=error)
            reply = _problem_page(Declined(500, "internal_error", "The server made a mistake; try again."))
        own = {name for name, _ in reply.headers}
        rest = [header for header in SECURITY if header[0] not in own]
        head = header_lines([(b"content-type", reply.media.encode()), *reply.headers, *rest])
        exchange.reply(reply.status, head, reply.body)

    async def _answer(self, exchange: Exchange, caller: Caller) -> Raw:
        if exchange.path == CALLBACK:
            return await self._come_back(exchange, caller)
        if exchange.method in ("GET", "HEAD"):
            asked = _known(parameters(exchange.query))
            return self._form(use_cases.read_request(caller, asked), asked)
        if exchange.method != "POST":
            raise Declined(405, "method_not_allowed", "This page takes GET and POST.", headers={"allow": "GET, POST"})
        if exchange.headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
            raise Declined(403, "origin_refused", "This form was sent by another site.")
        return await self._take_form(exchange, caller, await read_form(exchange))

    async def _take_form(self, exchange: Exchange, caller: Caller, form: Mapping[str, str]) -> Raw:
        """Act on the button that was pressed."""
        action = form.get("action", "")
        if "login" in form:
            browser = _browser(exchange)
            if action != "allow":
                return _redirect(use_cases.denied(use_cases.sealed_request(caller, form["login"], browser), self._base))
            return _redirect(
                await use_cases.log_in_with_provider(caller, form["login"], browser, form.get("person", ""))
            )
        asked = _known(form)
        request = use_cases.read_request(caller, asked)
        if action == "provider" and self._services.identity_provider.is_on:
            url, browser = await use_cases.begin_provider_login(caller, request)
            return _redirect(url, self._cookie(browser))
        if action == "send":
            self._services.logins.asked_for_code(exchange.connection.address, form.get("email", ""))
            await use_cases.send_code(caller, form.get("email", ""))
            said = "If this address is invited, a code is on its way to it."
            return self._form(request, asked, form.get("email", ""), said)
        if action != "allow":
            return _redirect(use_cases.denied(request, self._base))
        try:
            code = form.get("code", "")
            return _redirect(await use_cases.log_in_with_code(caller, request, form.get("email", ""), code))
        except Refused as refused:
            if refused.code != "login_code_invalid":
                raise
            self._services.logins.failed(exchange.connection.address, "")
            return self._form(request, asked, form.get("email", ""), refused.message, status=401)

    async def _come_back(self, exchange: Exchange, caller: Caller) -> Raw:
        """Show the consent page to a person who comes from the identity provider."""
        if exchange.method != "GET":
            raise Declined(405, "method_not_allowed", "This page takes GET.", headers={"allow": "GET"})
        said, browser = parameters(exchange.query), _browser(exchange)
        if "error" in said:
            raise Refused(403, "identity_provider_failed", "The identity provider did not log you in; start again.")
        login = await use_cases.finish_provider_login(caller, said.get("state", ""), said.get("code", ""), browser)
        choices = [
            f'<label><input type="radio" name="person" value="{escape(key_id)}"{" checked" if not place else ""}> '
            f"{escape(name)}</label>"
            for place, (key_id, name) in enumerate(use_cases.workspace_names(caller, login))
        ]
        sealed = use_cases.seal_login(caller, login, browser)
        body = [
            *_heading(login.request),
            f'<p>You are <b>{escape(login.email)}</b>.</p><form method="post" action="authorize">',
            f'<input type="hidden" name="login" value="{escape(sealed)}">',
            f"<p>Workspace</p>{''.join(choices)}{_BUTTONS}</form>",
        ]
        return page("Log in to RedKey", body, forms=_forms(login.request.redirect_uri))

    def _form(
        self,
        request: AuthorizationRequest,
        asked: Mapping[str, str],
        email: str = "",
        said: str = "",
        *,
        status: int = 200,
    ) -> Raw:
        hidden = "".join(
            f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in asked.items()
        )
        sends, provider = self._services.mail.is_on, self._services.identity_provider
        where = (
            "It comes by mail." if sends else "An admin of your workspace creates it: <code>redkey person code</code>."
        )
        body = [
            *_heading(request),
            f'<p class="alert" role="alert">{escape(said)}</p>' if said else "",
            f'<form method="post" action="authorize">{hidden}',
            '<label>E-mail address<input type="email" name="email" autocomplete="username" required '
            f'value="{escape(email)}"></label>',
            '<label>One-time code<input name="code" autocomplete="one-time-code" spellcheck="false"></label>',
            f"<p>{where}</p>{_BUTTONS}",
            '<p><button name="action" value="send">Send me a code</button></p>' if sends else "",
            "</form>",
        ]
        if provider.is_on:
            body.append(
                f'<form method="post" action="authorize">{hidden}<button name="action" value="provider">'
                f"Log in with {escape(provider.name)}</button></form>"
            )
        # The provider's page is reached by a redirect of this form, whatever its address is.
        also = " https: http://127.0.0.1:* http://localhost:*" if provider.is_on else ""
        return page("Log in to RedKey", body, status=status, forms=_forms(request.redirect_uri) + also)

    def _cookie(self, browser: str) -> tuple[bytes, bytes]:
        parts = urlsplit(self._base)
        secure = "; Secure" if parts.scheme == "https" else ""
        path = f"{parts.path.rstrip('/')}/oauth"
        text = f"{_COOKIE}={browser}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={_COOKIE_SECONDS}{secure}"
        return b"set-cookie", text.encode()


_BUTTONS = (
    '<p><button name="action" value="allow">Log in</button>'
    '<button name="action" value="deny" formnovalidate>Cancel</button></p>'
)


def _heading(request: AuthorizationRequest) -> Iterable[str]:
    """Say who asks, for what, and where the answer goes."""
    rights = [f"<li><b>{scope}</b>: {escape(SCOPES[scope])}</li>" for scope in SCOPES if scope in request.scopes]
    yield f"<h1>Log in to RedKey</h1><p><b>{escape(request.client_name)}</b> asks to act for you"
    yield (
        f" with these rights, as far as you have them:</p><ul>{''.join(rights)}</ul>"
        if rights
        else " with all your rights.</p>"
    )
    place = origin_of(request.redirect_uri)
    yield f"<p>The answer goes to <code>{escape(place)}</code>. The name above is what the program calls itself; "
    yield "continue only if you have just started it.</p>"


def _forms(redirect_uri: str) -> str:
    # Browsers apply form-action to the redirect that answers a form too.
    return f"'self' {origin_of(redirect_uri)}"


def _known(asked: Mapping[str, str]) -> dict[str, str]:
    return {name: asked[name] for name in _PARAMETERS if name in asked}


def _browser(exchange: Exchange) -> str:
    """Return the cookie that binds a login at the provider to its browser; empty if there is none."""
    try:
        found = SimpleCookie(exchange.headers.get(b"cookie", b"").decode("latin-1")).get(_COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _redirect(url: str, *headers: tuple[bytes, bytes]) -> Raw:
    return Raw(
        b"", "text/plain", 303, ((b"location", url.encode("ascii")), (b"referrer-policy", b"no-referrer"), *headers)
    )


def _problem_page(refused: RedKeyError) -> Raw:
    answer = problems.answer(refused)
    status = 400 if isinstance(refused, FormRefused) else answer.status
    body = [f'<h1>RedKey cannot log you in</h1><p class="alert" role="alert">{escape(refused.message)}</p>']
    made = page("RedKey cannot log you in", body, status=status)
    kept = [header for header in answer.headers if header[0] in (b"retry-after", b"allow")]
    return Raw(made.body, made.media, made.status, (*made.headers, *kept))
