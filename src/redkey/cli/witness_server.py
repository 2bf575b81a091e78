"""The witness over HTTP: one route, `POST /add-checkpoint`, with the statuses of C2SP tlog-witness."""

from __future__ import annotations

import ipaddress
import socket

import click
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from redkey.cli.report import shown
from redkey.errors import ProofRefused, RedKeyError, WitnessRefused
from redkey.ledger.witness import REQUEST_LIMIT, parse_request
from redkey.stores.witness import WitnessDirectory

SIZE_TYPE = "text/x.tlog.size"


def witness_app(witness: WitnessDirectory) -> Starlette:
    """The ASGI application of one witness."""

    async def add_checkpoint(http: HttpRequest) -> Response:
        body = bytearray()
        try:
            async for chunk in http.stream():
                body += chunk
                if len(body) > REQUEST_LIMIT:
                    return PlainTextResponse(f"a request has at most {REQUEST_LIMIT} bytes\n", 413)
        except ClientDisconnect:
            return Response(status_code=400)
        # The state is read, judged and synced in a thread; its file lock puts requests for one log in order.
        return await run_in_threadpool(_answer, witness, bytes(body))

    return Starlette(routes=[Route("/add-checkpoint", add_checkpoint, methods=["POST"])])


def _answer(witness: WitnessDirectory, body: bytes) -> Response:
    try:
        request = parse_request(body)
        line = witness.add_checkpoint(request).line()
    except WitnessRefused as refused:
        click.echo(shown(f"refused {refused.status}: {refused.message} [{refused.code}]"), err=True)
        if refused.size is not None:
            return Response(f"{refused.size}\n", refused.status, media_type=SIZE_TYPE)
        return PlainTextResponse(f"{refused.message}\n", refused.status)
    except ProofRefused as refused:
        return PlainTextResponse(f"{refused.message}\n", 400)
    except (RedKeyError, OSError) as broken:
        # Nothing was cosigned: what cannot be remembered must not be signed.
        click.echo(shown(f"failed: {broken}"), err=True)
        return PlainTextResponse("the witness cannot keep its memory; nothing was cosigned\n", 500)
    click.echo(shown(f"cosigned {request.checkpoint.origin} size {request.checkpoint.size}"), err=True)
    return PlainTextResponse(line)


def run(witness: WitnessDirectory, listen: str) -> None:
    """Serve until a signal comes."""
    with listening(listen) as sock:
        host, port = sock.getsockname()[:2]
        click.echo(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}")
        config = uvicorn.Config(
            witness_app(witness), log_level="warning", access_log=False, limit_concurrency=256, timeout_keep_alive=30
        )
        uvicorn.Server(config).run(sockets=[sock])


def listening(listen: str) -> socket.socket:
    """A socket that listens on a loopback address, `HOST:PORT`."""
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
