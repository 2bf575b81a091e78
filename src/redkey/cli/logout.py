"""`redkey logout`: end the login of this machine at a server."""

from __future__ import annotations

import os

import click

from redkey.client.kept_login import find_login, forget_login

_TIMEOUT_SECONDS = 30.0


@click.command()
@click.argument("url", required=False)
def command(url: str | None) -> None:
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
    click.echo(f"logged out at {login.url}")
