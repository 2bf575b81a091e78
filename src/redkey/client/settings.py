"""The server's address and key: from arguments, then `REDKEY_` variables, then the file that `redkey serve` wrote.

A key is a secret for one server. A key from one server's file is never sent to another server. A key that the user
provided is sent only to a server that the user named or that runs on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from redkey.client.kept_login import KeptLogin, find_login
from redkey.config import CREDENTIALS, DEFAULT_PORT, Credentials, data_directory, read_credentials
from redkey.discovery import LivingServer, current, living_servers
from redkey.errors import ConfigRefused

_UNIX = "unix:"


class Settings(msgspec.Struct, frozen=True):
    """Everything that a connection has to know about its server."""

    # The base of all request URLs; for a Unix socket, a name that only appears in the Host header.
    base_url: str
    uds: str | None
    api_key: str
    # The sources of the address and the key, for messages.
    url_source: str = ""
    key_source: str = ""
    # The login of a person, instead of a key.
    login: KeptLogin | None = None

    def __repr__(self) -> str:
        """Omit the key, because a repr may end up in a log."""
        return f"Settings({self.shown_url!r})"

    @property
    def bearer(self) -> str:
        """Return the key, or a valid access token of the login."""
        return self.api_key if self.login is None else self.login.token()

    @property
    def shown_url(self) -> str:
        return f"{_UNIX}{self.uds}" if self.uds is not None else self.base_url

    @property
    def is_local(self) -> bool:
        return self.uds is not None or is_local(self.base_url)

    @property
    def origin(self) -> str:
        """Describe the server and the sources of its address and key; never the key itself."""
        source = f" (from {self.url_source})" if self.url_source else ""
        return f"{self.shown_url}{source}" + (f", key from {self.key_source}" if self.key_source else "")


def find_settings(
    url: str | None, api_key: str | None, data: str | Path | None, environment: Mapping[str, str]
) -> Settings:
    """Return the settings for a client; ConfigRefused with the next step if they cannot be found."""
    wanted, key = url or environment.get("REDKEY_URL"), api_key or environment.get("REDKEY_API_KEY")
    url_source = "the url given" if url else "REDKEY_URL"
    key_source = "the api_key given" if api_key else "REDKEY_API_KEY"
    wanted = _with_scheme(wanted) if wanted else None
    if wanted and key:
        return _settings(wanted, key, url_source, key_source)
    directory = data_directory(data, environment)
    file, credentials = str(directory / CREDENTIALS), _read(directory)
    if wanted:
        living = (name for one in living_servers(directory) for name in _names(one))
        if credentials is None or wanted.rstrip("/") not in (*_names(credentials), *living):
            if (login := find_login(wanted, environment)) is not None:
                return _of_login(login, url_source)
            raise ConfigRefused(
                f"there is no key for {wanted} (from {url_source}): give api_key, set REDKEY_API_KEY, "
                f"or log in: redkey login {wanted}"
            )
        return _settings(wanted, credentials.api_key, url_source, file)
    if credentials is not None:
        if key and not is_local(credentials.url):
            raise ConfigRefused(
                f"{directory} names {credentials.url}: name it in REDKEY_URL if your key is meant for it"
            )
        overriding = f"{key_source}, which overrides {file}" if key and key != credentials.api_key else ""
        return _settings(current(credentials, directory).url, key or credentials.api_key, file, overriding or file)
    if key:
        return _settings(f"http://127.0.0.1:{DEFAULT_PORT}", key, "the default", key_source)
    if (login := find_login(None, environment)) is not None:
        return _of_login(login, "your last login")
    if (directory / "redkey.db").is_file():
        raise ConfigRefused(
            f"{directory} has a ledger but no {CREDENTIALS}: set REDKEY_API_KEY to a key of it, or get a new one with "
            f"`redkey key recover {directory}`",
            code="no_credentials",
        )
    raise ConfigRefused(
        f"no RedKey server found: run `redkey serve` here, name its data directory ({directory} has no credentials) in "
        "REDKEY_DATA, set REDKEY_URL and REDKEY_API_KEY, or log in to a server: redkey login URL",
        code="no_server",
    )


def _of_login(login: KeptLogin, url_source: str) -> Settings:
    settings = _settings(login.url, "-", url_source, f"your login in {login.path}")
    return msgspec.structs.replace(settings, api_key="", login=login)


def _with_scheme(url: str) -> str:
    """Return the URL for an address as people type it: http for this machine, as in `127.0.0.1:8700`, else https."""
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
    """Whether the address is on this machine."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address.is_unspecified
