"""Headers that every answer carries, whichever door gives it."""

from __future__ import annotations

# Nothing here is for a browser to run, to guess the type of, or to keep.
SECURITY: list[tuple[bytes, bytes]] = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
]
