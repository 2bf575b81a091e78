"""The witness over HTTP: one route, `POST /add-checkpoint`, with the statuses of C2SP tlog-witness."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable

import click
import uvloop

from redkey.cli.report import shown
from redkey.config import Config, Limits
from redkey.errors import ProofRefused, RedKeyError, WitnessRefused
from redkey.http.exchange import Exchange
from redkey.http.host import Host, url_of
from redkey.http.problems import Declined
from redkey.http.request import read_body
from redkey.ledger.witness import REQUEST_LIMIT, parse_request
from redkey.stores.witness import WitnessDirectory

SIZE_TYPE = "text/x.tlog.size"
_TEXT_TYPE = "text/plain; charset=utf-8"
_CONNECTIONS = 256

# Status, media type, text.
Answer = tuple[int, str, str]


class WitnessServer:
    """One witness as an application."""

    def __init__(self, witness: WitnessDirectory) -> None:
        self._witness = witness

    async def __call__(self, exchange: Exchange) -> None:
        """Answer a request."""
        try:
            status, media, text = await self._answer(exchange)
        except ConnectionResetError:
            return
        except Declined as declined:
            status, media, text = declined.status, _TEXT_TYPE, f"{declined.message}\n"
        exchange.reply(status, f"content-type: {media}\r\n".encode(), text.encode())

    async def _answer(self, exchange: Exchange) -> Answer:
        if exchange.path != "/add-checkpoint":
            return 404, _TEXT_TYPE, "there is only /add-checkpoint\n"
        if exchange.method != "POST":
            return 405, _TEXT_TYPE, "checkpoints are added by POST\n"
        body = await read_body(exchange, REQUEST_LIMIT)
        # A thread reads, checks and syncs the state; its file lock serializes requests for one log.
        return await asyncio.to_thread(self._add, body)

    def _add(self, body: bytes) -> Answer:
        try:
            request = parse_request(body)
            line = self._witness.add_checkpoint(request).line()
        except WitnessRefused as refused:
            click.echo(shown(f"refused {refused.status}: {refused.message} [{refused.code}]"), err=True)
            if refused.size is not None:
                return refused.status, SIZE_TYPE, f"{refused.size}\n"
            return refused.status, _TEXT_TYPE, f"{refused.message}\n"
        except ProofRefused as refused:
            return 400, _TEXT_TYPE, f"{refused.message}\n"
        except (RedKeyError, OSError) as broken:
            # Nothing was cosigned, because the witness must remember everything that it signs.
            click.echo(shown(f"failed: {broken}"), err=True)
            return 500, _TEXT_TYPE, "the witness cannot keep its memory; nothing was cosigned\n"
        click.echo(shown(f"cosigned {request.checkpoint.origin} size {request.checkpoint.size}"), err=True)
        return 200, _TEXT_TYPE, line

    async def start(self) -> None:
        """A witness needs no startup."""

    def begin_stop(self) -> None:
        """No request outlives its reply."""

    async def finish_stop(self) -> None:
        """Every cosignature is already durable."""


def run(witness: WitnessDirectory, listen: str) -> None:
    """Serve until SIGTERM or SIGINT."""
    with listening(listen) as sock:
        config = Config(limits=Limits(connections=_CONNECTIONS, strangers=_CONNECTIONS))
        host = Host(WitnessServer(witness), config, _announce(sock))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(host.serve([sock]))


def _announce(sock: socket.socket) -> Callable[[], None]:
    return lambda: click.echo(f"listening on {url_of(sock)}")


def listening(listen: str) -> socket.socket:
    """Return a socket that listens on a loopback address, `HOST:PORT`."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
        number = int(port)
        if not 0 <= number <= 65_535:
            raise ValueError(port)
    except ValueError as cause:
        raise click.UsageError(f"{listen} is not HOST:PORT") from cause
    if not address.is_loopback:
        raise click.UsageError(f"{host} is not a loopback address; put a proxy that speaks TLS before the witness")
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        return socket.create_server((str(address), number), family=family, backlog=256)
    except OSError as cause:
        raise click.UsageError(f"cannot listen on {listen}: {cause}") from cause
