"""Where the server is and which key opens it: arguments, then `REDKEY_` variables, then what `redkey serve` wrote.

A key is a secret for one server. A key that was found in the file of one server is never sent to another, and a key
that was given by hand goes only to a server that was named by hand or that is on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from redkey.config import CREDENTIALS, DEFAULT_PORT, Credentials, data_directory, read_credentials
from redkey.discovery import LivingServer, current, living_servers
from redkey.errors import ConfigRefused

_UNIX = "unix:"


class Settings(msgspec.Struct, frozen=True):
    """Everything that a connection needs to know of its server."""

    # What requests are sent to; for a Unix socket a name that only stands in the Host header.
    base_url: str
    uds: str | None
    api_key: str
    # Where the address and the key were found, for messages.
    url_source: str = ""
    key_source: str = ""

    def __repr__(self) -> str:
        """Without the key: this may end in a log."""
        return f"Settings({self.shown_url!r})"

    @property
    def shown_url(self) -> str:
        return f"{_UNIX}{self.uds}" if self.uds is not None else self.base_url

    @property
    def is_local(self) -> bool:
        return self.uds is not None or is_local(self.base_url)

    @property
    def origin(self) -> str:
        """The server and where its address and key come from, in words; never the key."""
        source = f" (from {self.url_source})" if self.url_source else ""
        return f"{self.shown_url}{source}" + (f", key from {self.key_source}" if self.key_source else "")


def find_settings(
    url: str | None, api_key: str | None, data: str | Path | None, environment: Mapping[str, str]
) -> Settings:
    """The settings for a client; ConfigRefused with the next step when they are not to be found."""
    wanted, key = url or environment.get("REDKEY_URL"), api_key or environment.get("REDKEY_API_KEY")
    url_source = "the url given" if url else "REDKEY_URL"
    key_source = "the api_key given" if api_key else "REDKEY_API_KEY"
    wanted = _with_scheme(wanted) if wanted else None
    if wanted and key:
        return _settings(wanted, key, url_source, key_source)
    directory = data_directory(data, environment)
    file, found = str(directory / CREDENTIALS), _read(directory)
    if wanted:
        living = (name for one in living_servers(directory) for name in _names(one))
        if found is None or wanted.rstrip("/") not in (*_names(found), *living):
            raise ConfigRefused(
                f"there is no key for {wanted} (from {url_source}): give api_key, or set REDKEY_API_KEY"
            )
        return _settings(wanted, found.api_key, url_source, file)
    if found is not None:
        if key and not is_local(found.url):
            raise ConfigRefused(f"{directory} names {found.url}: name it in REDKEY_URL if your key is meant for it")
        overriding = f"{key_source}, which overrides {file}" if key and key != found.api_key else ""
        return _settings(current(found, directory).url, key or found.api_key, file, overriding or file)
    if key:
        return _settings(f"http://127.0.0.1:{DEFAULT_PORT}", key, "the default", key_source)
    if (directory / "redkey.db").is_file():
        raise ConfigRefused(
            f"{directory} has a ledger but no {CREDENTIALS}: set REDKEY_API_KEY to a key of it, or get a new one with "
            f"`redkey key recover {directory}`",
            code="no_credentials",
        )
    raise ConfigRefused(
        f"no RedKey server found: run `redkey serve` here, name its data directory ({directory} has no credentials) in "
        "REDKEY_DATA, or set REDKEY_URL and REDKEY_API_KEY",
        code="no_server",
    )


def _with_scheme(url: str) -> str:
    """An address as people type it: `127.0.0.1:8700` is http on this machine, and https on any other."""
    if "://" in url or url.startswith(_UNIX):
        return url
    return f"http://{url}" if is_local(f"http://{url}") else f"https://{url}"


def _read(directory: Path) -> Credentials | None:
    try:
        return read_credentials(directory)
    except OSError as cause:
        raise ConfigRefused(f"the credentials in {directory} cannot be read: {cause.strerror}") from None


def _names(found: Credentials | LivingServer) -> tuple[str, ...]:
    return (found.url.rstrip("/"), *((_UNIX + found.uds,) if found.uds else ()))


def _settings(url: str, api_key: str, url_source: str, key_source: str) -> Settings:
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise ConfigRefused(f"the API key (from {key_source}) has characters that no key has")
    if url.startswith(_UNIX):
        path = "/" + url.removeprefix(_UNIX).lstrip("/") if url.startswith(_UNIX + "/") else url.removeprefix(_UNIX)
        if not path:
            raise ConfigRefused("a Unix socket is named as unix:/path/to/socket")
        return Settings("http://redkey", path, api_key, url_source, key_source)
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    if not right or parts.username is not None or parts.query or parts.fragment:
        raise ConfigRefused(
            f"{url_source} does not name a server: use http://host:port, https://host or unix:/path/to/socket"
        )
    return Settings(url.rstrip("/"), None, api_key, url_source, key_source)


def is_local(url: str) -> bool:
    """Whether what is sent there stays on this machine."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified
