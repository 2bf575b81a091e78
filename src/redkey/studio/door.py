"""The routes of the Studio: `/` redirects there, and `/studio/` serves its files.

The page is a client of the API like any other. No key is checked here, because the files contain no user data.
"""

from __future__ import annotations

from importlib.resources import files

from redkey.http.exchange import Exchange, header_lines
from redkey.http.files import INDEX, Files
from redkey.http.problems import MEDIA_TYPE, Declined, answer
from redkey.http.security import SECURITY

PATH = "/studio/"
# The page may run its own script and style and call its own server, but may not turn text into markup.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html",
    )
).encode()
_PAGE = (
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
# These file names change with the file's content.
_FILE = ((b"cache-control", b"public, max-age=31536000, immutable"),)


class StudioDoor:
    """The files of the Studio, kept in memory."""

    def __init__(self) -> None:
        root = files("redkey.studio") / "assets"
        self._files = Files(root, headers={INDEX: _PAGE, "files/": _FILE})

    def __call__(self, exchange: Exchange) -> None:
        """Serve a file, redirect to the page, or answer 404."""
        try:
            self._answer(exchange)
        except Declined as declined:
            refused = answer(declined)
            head = header_lines([(b"content-type", MEDIA_TYPE.encode()), *SECURITY, *refused.headers])
            exchange.reply(refused.status, head, refused.body)

    def _answer(self, exchange: Exchange) -> None:
        if exchange.method not in ("GET", "HEAD"):
            detail = f"{exchange.method[:16]} is not a method of this path."
            raise Declined(405, "method_not_allowed", detail, headers={"allow": "GET, HEAD"})
        if not exchange.path.startswith(PATH):
            # A relative path, so that the redirect also works behind a proxy that adds a prefix.
            target = b"studio/"
            exchange.reply(307, header_lines([(b"location", target), *SECURITY]), b"")
            return
        found = self._files.find(exchange.path.removeprefix(PATH))
        if found is None:
            raise Declined(404, "path_not_found", f"There is nothing at {exchange.path[:200]}.")
        found.send(exchange)
