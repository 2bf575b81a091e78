"""The logins of a person on this machine, stored by `redkey login`, one for each server.

Only the owner can read the file. An access token is valid for minutes. It is renewed here before it expires, with the
refresh token, which is valid once: processes that share the file take turns, and each reads what the previous one
wrote.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from redkey.errors import ConfigRefused

CLIENT_ID = "redkey-cli"
FILE = "logins.json"
# A token is renewed this many seconds before it expires, so that it is still valid when it arrives.
_EARLY_SECONDS = 60
_TIMEOUT_SECONDS = 15.0


class KeptTokens(msgspec.Struct, frozen=True, rename="camel"):
    """The tokens of a login at one server."""

    access_token: str
    refresh_token: str
    expires_at: float
    scope: str = ""

    def __repr__(self) -> str:
        """Omit the tokens, because a repr may end up in a log."""
        return f"KeptTokens(scope={self.scope!r})"


class _File(msgspec.Struct, frozen=True, rename="camel"):
    # The server of the last login, used if no server is named.
    current: str = ""
    logins: dict[str, KeptTokens] = {}


class KeptLogin:
    """A login at one server, whose access token is renewed when needed."""

    def __init__(self, path: Path, url: str, tokens: KeptTokens) -> None:
        self.path, self.url, self._tokens = path, url, tokens

    def token(self) -> str:
        """Return a valid access token; ConfigRefused if the person has to log in again."""
        if time.time() < self._tokens.expires_at - _EARLY_SECONDS:
            return self._tokens.access_token
        with _locked(self.path):
            tokens = _read(self.path).logins.get(self.url)
            if tokens is None:
                raise _ended(self.url)
            if time.time() >= tokens.expires_at - _EARLY_SECONDS:
                tokens = _renewed(self.url, tokens)
                _change(self.path, self.url, tokens)
            self._tokens = tokens
        return tokens.access_token

    @property
    def refresh_token(self) -> str:
        """Return the newest refresh token, which ends the session."""
        tokens = _read(self.path).logins.get(self.url)
        return (tokens or self._tokens).refresh_token


def logins_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the logins, in the user's configuration directory."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "redkey" / FILE


def find_login(url: str | None, environment: Mapping[str, str]) -> KeptLogin | None:
    """Return the login at a server, or the last login if none is named; None if there is none."""
    path = logins_file(environment)
    kept = _read(path)
    wanted = (url or kept.current).rstrip("/")
    tokens = kept.logins.get(wanted)
    return KeptLogin(path, wanted, tokens) if tokens is not None else None


def keep_login(url: str, tokens: KeptTokens, environment: Mapping[str, str]) -> Path:
    """Store a new login and make its server the default; return the file."""
    path = logins_file(environment)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(path):
        _change(path, url.rstrip("/"), tokens)
    return path


def forget_login(login: KeptLogin) -> None:
    """Delete a login from the file."""
    with _locked(login.path):
        _change(login.path, login.url, None)


def tokens_of(reply: Mapping[str, object], now: float) -> KeptTokens:
    """Return the tokens in an answer of `/oauth/token`; KeyError or ValueError if they are missing."""
    expires_at = now + float(str(reply["expires_in"]))
    return KeptTokens(str(reply["access_token"]), str(reply["refresh_token"]), expires_at, str(reply.get("scope", "")))


def _renewed(url: str, tokens: KeptTokens) -> KeptTokens:
    # Imported here, because most commands do not need a second HTTP client.
    import httpx2

    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token, "client_id": CLIENT_ID}
    headers = {"content-type": "application/x-www-form-urlencoded"}
    now = time.time()
    try:
        reply = httpx2.post(
            f"{url}/oauth/token", content=urlencode(form).encode(), headers=headers, timeout=_TIMEOUT_SECONDS
        )
        if reply.status_code == 400:
            raise _ended(url)
        return tokens_of(reply.raise_for_status().json(), now)
    except (httpx2.HTTPError, KeyError, ValueError) as cause:
        raise ConfigRefused(f"the login at {url} could not be renewed: {cause}", code="login_not_renewed") from cause


def _ended(url: str) -> ConfigRefused:
    return ConfigRefused(f"the login at {url} has ended: run `redkey login {url}`", code="login_ended")


def _read(path: Path) -> _File:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File)
    except (FileNotFoundError, NotADirectoryError):
        return _File()
    except (OSError, msgspec.DecodeError) as cause:
        raise ConfigRefused(f"{path} cannot be read: {cause}; delete it and log in again") from cause


def _change(path: Path, url: str, tokens: KeptTokens | None) -> None:
    """Add or delete a login. The new file replaces the old one atomically, so a crash leaves one of them intact."""
    kept = _read(path)
    logins = {name: one for name, one in kept.logins.items() if name != url}
    if tokens is not None:
        logins[url] = tokens
    current = url if tokens is not None else next(iter(logins), "")
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(_File(current, logins)))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock the file against the user's other processes while it changes."""
    import fcntl

    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
