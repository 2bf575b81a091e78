"""The pages where people log in: `/oauth/authorize`, and `/oauth/callback` for those who return from a provider.

They are plain HTML forms without scripts. The parameters of the client are in hidden fields and are checked each time.
The only cookie binds a login at the identity provider to the browser that started it.
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
# The parameters that a client sends; others are ignored, as RFC 6749 requires.
_PARAMETERS = (
    *("response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method"),
    "resource",
)
_log = structlog.get_logger("redkey.logins")
_NO_ACTOR = Actor("", "", frozenset())


class AuthorizeDoor:
    """Answers the browsers of people who log in."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._base = services.config.public_url

    async def __call__(self, exchange: Exchange) -> None:
        """Answer with a page or a redirect."""
        caller = Caller(self._services)
        caller.actor, caller.topic = _NO_ACTOR, ""
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
            reply = _problem_page(Declined(500, "internal_error", "The server made an error; try again."))
        own = {name for name, _ in reply.headers}
        rest = [header for header in SECURITY if header[0] not in own]
        head = header_lines([(b"content-type", reply.media.encode()), *reply.headers, *rest])
        exchange.reply(reply.status, head, reply.body)

    async def _answer(self, exchange: Exchange, caller: Caller) -> Raw:
        if exchange.path == CALLBACK:
            return await self._come_back(exchange, caller)
        if exchange.method in ("GET", "HEAD"):
            request = _known(parameters(exchange.query))
            return self._form(use_cases.read_request(caller, request), request)
        if exchange.method != "POST":
            raise Declined(405, "method_not_allowed", "This page accepts GET and POST.", headers={"allow": "GET, POST"})
        if exchange.headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
            raise Declined(403, "origin_refused", "This form was sent by another site.")
        return await self._take_form(exchange, caller, await read_form(exchange))

    async def _take_form(self, exchange: Exchange, caller: Caller, form: Mapping[str, str]) -> Raw:
        """Do what the pressed button says."""
        action = form.get("action", "")
        if "login" in form:
            browser = _browser(exchange)
            if action != "allow":
                return _redirect(use_cases.denied(use_cases.sealed_request(caller, form["login"], browser), self._base))
            return _redirect(
                await use_cases.log_in_with_provider(caller, form["login"], browser, form.get("person", ""))
            )
        fields = _known(form)
        request = use_cases.read_request(caller, fields)
        if action == "provider" and self._services.identity_provider.is_on:
            url, browser = await use_cases.begin_provider_login(caller, request)
            return _redirect(url, self._cookie(browser))
        if action == "send":
            self._services.logins.code_requested(exchange.connection.address, form.get("email", ""))
            await use_cases.send_code(caller, form.get("email", ""))
            notice = "If this address is invited, a code was sent to it."
            return self._form(request, fields, form.get("email", ""), notice)
        if action != "allow":
            return _redirect(use_cases.denied(request, self._base))
        try:
            code = form.get("code", "")
            return _redirect(await use_cases.log_in_with_code(caller, request, form.get("email", ""), code))
        except Refused as refused:
            if refused.code != "login_code_invalid":
                raise
            self._services.logins.failed(exchange.connection.address, "")
            return self._form(request, fields, form.get("email", ""), refused.message, status=401)

    async def _come_back(self, exchange: Exchange, caller: Caller) -> Raw:
        """Show the consent page to a person who returns from the identity provider."""
        if exchange.method != "GET":
            raise Declined(405, "method_not_allowed", "This page accepts GET.", headers={"allow": "GET"})
        answer, browser = parameters(exchange.query), _browser(exchange)
        if "error" in answer:
            raise Refused(403, "identity_provider_failed", "The identity provider did not log you in; start again.")
        login = await use_cases.finish_provider_login(caller, answer.get("state", ""), answer.get("code", ""), browser)
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
        fields: Mapping[str, str],
        email: str = "",
        notice: str = "",
        *,
        status: int = 200,
    ) -> Raw:
        hidden = "".join(
            f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in fields.items()
        )
        mails, provider = self._services.mail.is_on, self._services.identity_provider
        where = (
            "It comes by mail." if mails else "An admin of your workspace creates it: <code>redkey person code</code>."
        )
        body = [
            *_heading(request),
            f'<p class="alert" role="alert">{escape(notice)}</p>' if notice else "",
            f'<form method="post" action="authorize">{hidden}',
            '<label>E-mail address<input type="email" name="email" autocomplete="username" required '
            f'value="{escape(email)}"></label>',
            '<label>One-time code<input name="code" autocomplete="one-time-code" spellcheck="false"></label>',
            f"<p>{where}</p>{_BUTTONS}",
            '<p><button name="action" value="send">Send me a code</button></p>' if mails else "",
            "</form>",
        ]
        if provider.is_on:
            body.append(
                f'<form method="post" action="authorize">{hidden}<button name="action" value="provider">'
                f"Log in with {escape(provider.name)}</button></form>"
            )
        # This form redirects to the provider's page, whatever its address is.
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
    """Name the client, the rights it asks for, and where the answer goes."""
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


def _known(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: fields[name] for name in _PARAMETERS if name in fields}


def _browser(exchange: Exchange) -> str:
    """Return the cookie that binds a login at the provider to its browser; empty if there is none."""
    try:
        cookie = SimpleCookie(exchange.headers.get(b"cookie", b"").decode("latin-1")).get(_COOKIE)
    except CookieError:
        return ""
    return cookie.value if cookie is not None else ""


def _redirect(url: str, *headers: tuple[bytes, bytes]) -> Raw:
    return Raw(
        b"", "text/plain", 303, ((b"location", url.encode("ascii")), (b"referrer-policy", b"no-referrer"), *headers)
    )


def _problem_page(refused: RedKeyError) -> Raw:
    answer = problems.answer(refused)
    status = 400 if isinstance(refused, FormRefused) else answer.status
    body = [f'<h1>RedKey cannot log you in</h1><p class="alert" role="alert">{escape(refused.message)}</p>']
    problem = page("RedKey cannot log you in", body, status=status)
    kept = [header for header in answer.headers if header[0] in (b"retry-after", b"allow")]
    return Raw(problem.body, problem.media, problem.status, (*problem.headers, *kept))
