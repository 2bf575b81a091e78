"""`redkey logout`: end the login of this machine at a server."""

from __future__ import annotations

import os

import click

from redkey.cli.screen import print_done
from redkey.cli.session import json_option
from redkey.client.kept_login import find_login, forget_login

_TIMEOUT_SECONDS = 30.0


@click.command()
@click.argument("url", required=False)
@json_option
def command(url: str | None, as_json: bool) -> None:
    """End your login at the server at URL, or at the server of the last login. Its tokens end at once.

    \b
      redkey logout
    """
    login = find_login(url, os.environ)
    if login is None:
        raise click.ClickException("you are not logged in there: redkey login URL")
    import httpx2

    form = {"token": login.refresh_token, "token_type_hint": "refresh_token"}
    try:
        httpx2.post(f"{login.url}/oauth/revoke", data=form, timeout=_TIMEOUT_SECONDS).raise_for_status()
    except httpx2.HTTPError as cause:
        detail = f"{login.url} does not answer, so your session goes on there ({cause}); try again"
        raise click.ClickException(detail) from cause
    forget_login(login)
    print_done({"url": login.url, "status": "logged_out"}, f"logged out at {login.url}", as_json=as_json)
