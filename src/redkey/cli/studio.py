"""`redkey studio`: a link to the web page of the server that logs in."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING

import click

from redkey.cli.report import print_json
from redkey.cli.session import daily

if TYPE_CHECKING:
    from redkey.client import RedKey


@click.command()
@click.option("--open", "opens", is_flag=True, help="Open it in the browser of this machine.")
@daily
def command(rk: RedKey, opens: bool, as_json: bool) -> None:
    """Print a link to the Studio, the web page of the server. It logs in once, within ten minutes.

    \b
      redkey studio
      redkey studio --open
    """
    made = rk.logins.create()
    # The page's address on this machine: others may use another address for the server.
    link = f"{rk.settings.shown_url.rstrip('/')}/studio/#code={made.secret}"
    if as_json:
        print_json({"url": link, "expiresAt": made.expires_at})
        return
    click.echo(link)
    if opens and not webbrowser.open(link):
        raise click.ClickException("no browser can be opened from here; open the link by hand")
