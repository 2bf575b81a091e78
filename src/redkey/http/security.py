"""The security headers of every HTTP answer."""

from __future__ import annotations

# Browsers must not cache an answer, run anything in it, or guess its type.
SECURITY: list[tuple[bytes, bytes]] = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
]
