"""Serving: the life of a server process, from its configuration to its exit code."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import shlex
import sys
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import msgspec
import structlog
import uvloop

from redkey.app import App, write_credentials
from redkey.bus.runtime.relay import RelayPolicy
from redkey.bus.standalone import StandaloneBus
from redkey.config import CREDENTIALS, Config, Credentials, read_credentials
from redkey.discovery import Announcement, current, keep_out_of_repositories, living_servers
from redkey.errors import CannotListen
from redkey.http.host import Host, close, listen, url_of
from redkey.logs import set_up_logs
from redkey.stores.disk import check_room, disk_failures
from redkey.stores.durable import replace_file

_log = structlog.get_logger("redkey.serving")
# File descriptors that are not connections: the store's, the logs', those of uploads and downloads.
_RESERVED_FILES = 256
# A server does not start with less free disk space: one of its first writes would fail, with a less clear error.
_START_BYTES = 1024 * 1024
# The collector runs after this many new objects.
_YOUNG_OBJECTS = 20_000
# Where the HTTP interface of a bus listens by default.
BUS_PORT = 8701
# How long a thread may keep the interpreter while the event loop waits for it; Python's own 5 ms add up.
_SWITCH_SECONDS = 0.0001


class Ready(msgspec.Struct, frozen=True, rename="camel"):
    """The content of the ready file."""

    url: str
    uds: str | None
    workspace_id: str
    pid: int
    # The address of A2A over gRPC, if it is served.
    grpc: str | None = None


def serve(config: Config, say: Callable[[str], Any]) -> int:
    """Serve until a signal comes or the store fails; return the exit code."""
    set_up_logs(config)
    config = _within_open_files(config)
    sockets = listen(config)
    try:
        return _run(config, sockets, say)
    finally:
        close(sockets)
        if config.uds is not None:
            config.uds.unlink(missing_ok=True)
        if config.ready_file is not None:
            config.ready_file.unlink(missing_ok=True)


def _within_open_files(config: Config) -> Config:
    """Raise the limit of open files to the system's maximum, and reserve enough of them for the store: unauthenticated
    callers must not be able to keep it from opening its files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = config.limits.connections + _RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return config
    room = max(soft - _RESERVED_FILES, soft // 2)
    return msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, connections=room))


def _run(config: Config, sockets: list[Any], say: Callable[[str], Any]) -> int:
    url = url_of(sockets[0])
    config = msgspec.structs.replace(config, public_url=config.public_url or url)
    fatal = _Fatal("the store failed; the process stops")
    with disk_failures():
        check_room(config.data.absolute(), _START_BYTES)
        app = App(config, fatal)
        app.url = url
    uds = str(config.uds.absolute()) if config.uds is not None else None
    doorplate = _Doorplate(app, url, uds)
    serving = False

    def on_ready() -> None:
        nonlocal serving
        _settle_memory()
        _share_processor()
        with disk_failures():
            doorplate.put_up(say)
            if config.ready_file is not None:
                ready = Ready(url, uds, app.workspace_id, os.getpid(), app.a2a.grpc_address or None)
                replace_file(config.ready_file, msgspec.json.encode(ready), 0o600)
        serving = True
        room = config.limits.connections
        _log.info("serving", url=url, uds=uds, workspace_id=app.workspace_id, connections=room, store=app.store.engine)
        if not ip_address(sockets[0].getsockname()[0]).is_loopback:
            _log.warning("keys are sent unencrypted: put a TLS proxy in front of this server", url=url)

    try:
        return _serve(Host(app, config, on_ready), sockets, fatal)
    finally:
        doorplate.take_down()
        if serving:
            _log.info("stopped", url=url)


class _Fatal:
    """Called when the process cannot continue: stops the host, which then exits with code 1."""

    def __init__(self, message: str) -> None:
        self._message = message
        self.happened = False
        self.host: Host | None = None

    def __call__(self, cause: BaseException) -> None:
        _log.critical(self._message, reason=str(cause))
        self.happened = True
        if self.host is not None:
            self.host.stop()


def _serve(host: Host, sockets: list[Any], fatal: _Fatal) -> int:
    """Serve until a signal comes or `fatal` is called; return the exit code."""
    fatal.host = host
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(host.serve(sockets))
    return 1 if fatal.happened else 0


def _share_processor() -> None:
    """Make threads that work on large bodies hand over to the event loop soon."""
    sys.setswitchinterval(_SWITCH_SECONDS)


def _settle_memory() -> None:
    """Exclude the objects of the start from garbage collection, and collect less often: requests leave little cyclic
    garbage.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 20, 50)


class BusReady(msgspec.Struct, frozen=True):
    """How callers find a standalone bus: kept in its home while it runs, and written to the ready file."""

    url: str
    home: str
    pid: int


def serve_bus(
    home: Path, config: Config, policy: RelayPolicy, say: Callable[[str], Any], *, finds_port: bool = False
) -> int:
    """Serve a bus until a signal comes or its log fails; return the exit code.

    With `finds_port` it listens on its earlier port, so that its callers find it again.
    """
    set_up_logs(config)
    config = _within_open_files(config)
    if not _is_loopback(config.host):
        raise CannotListen(f"the bus listens on this machine only, not on {config.host}", code="not_loopback")
    fatal = _Fatal("the bus's log failed; the process stops")
    bus = StandaloneBus(home, fatal, policy=policy)
    sockets = _listen_again(home, config) if finds_port else listen(config)
    told = [path for path in (home / "http.json", config.ready_file) if path is not None]

    def on_ready() -> None:
        _settle_memory()
        ready = msgspec.json.encode(BusReady(url_of(sockets[0]), str(home), os.getpid()))
        for path in told:
            replace_file(path, ready, 0o600)
        say(f"The bus of {home} listens at {home / 'coord.sock'} and {url_of(sockets[0])}/api (token in {home}/token)")

    try:
        return _serve(Host(bus, config, on_ready), sockets, fatal)
    finally:
        close(sockets)
        for path in told:
            path.unlink(missing_ok=True)


def _listen_again(home: Path, config: Config) -> list[Any]:
    """Listen on this home's earlier port, else on the usual one, else on a free one; store which it was."""
    kept = home / "http.port"
    before = kept.read_text().strip() if kept.is_file() else ""
    ports = [int(before)] if before.isdigit() and int(before) < 65536 else []
    sockets: list[Any] = []
    for port in (*ports, BUS_PORT, 0):
        try:
            sockets = listen(msgspec.structs.replace(config, port=port))
            break
        except CannotListen as refused:
            if port == 0:
                raise
            _log.warning("the port is in use; another one is taken", port=port, reason=refused.message)
    replace_file(kept, str(sockets[0].getsockname()[1]).encode(), 0o600)
    return sockets


def _is_loopback(host: str) -> bool:
    return host == "localhost" or ip_address(host).is_loopback


class _Doorplate:
    """How callers find this server: its file in the data directory, the credentials, and the banner."""

    def __init__(self, app: App, url: str, uds: str | None) -> None:
        self._app, self._url, self._uds = app, url, uds
        self._data = app.config.data
        self._announcement: Announcement | None = None

    def put_up(self, say: Callable[[str], Any]) -> None:
        keep_out_of_repositories(self._data)
        before = read_credentials(self._data)
        key = self._app.first_key or (before.api_key if before is not None else None)
        # A running server stays the one that clients call; a second one is called by its own address.
        taken = before is not None and before.url in (one.url for one in living_servers(self._data))
        self._announcement = Announcement(self._data, self._url, self._uds)
        if key is not None and not (before is not None and taken and before.api_key == key):
            write_credentials(self._data, Credentials(self._url, self._uds, self._app.workspace_id, key))
        say(self._banner(key, second=taken))

    def take_down(self) -> None:
        """Leave the credentials to another server of this data directory, if there is one."""
        if self._announcement is None:
            return
        self._announcement.withdraw()
        before = read_credentials(self._data)
        if before is not None and before.url == self._url and (after := current(before, self._data)) != before:
            write_credentials(self._data, after)

    def _banner(self, held: str | None, *, second: bool) -> str:
        data, file = self._data, self._data / CREDENTIALS
        option = "" if data == Config().data else f" --data {shlex.quote(str(data))}"
        scopes = " (operator, admin)" if self._app.first_key is not None else ""
        key = f"{file}{scopes}" if held else f"none in {data}; get one: redkey key recover {shlex.quote(str(data))}"
        option = f" --url {self._url}" if second else option
        facts = {
            "data": f"{data}  (workspace {self._app.workspace_id})",
            "key": key,
            "studio": self._studio_link(held) or f"redkey studio{option}",
            "next": f'redkey task create --role researcher --title "Research Piers Gorman"{option}',
        }
        if self._uds is not None:
            facts = {"socket": self._uds, **facts}
        lines = [f"RedKey serves at {self._url}", *(f"  {name:<7} {fact}" for name, fact in facts.items())]
        return "\n".join(lines)

    def _studio_link(self, key: str | None) -> str:
        """Create a link that logs in; only on a terminal, because logs are kept and read by others."""
        return self._app.login_link(key) if key and sys.stdout.isatty() else ""
