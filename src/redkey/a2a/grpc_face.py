"""The gRPC binding of A2A, on its own port, with the official SDK (extra `redkey[a2a]`)."""

from __future__ import annotations

from typing import Any, NoReturn

import grpc
import grpc.aio
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import GrpcHandler, GrpcServerCallContextBuilder
from a2a.types import a2a_pb2_grpc
from a2a.utils.errors import A2AError
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from redkey.a2a import face
from redkey.a2a.errors import A2aError
from redkey.a2a.face import Face
from redkey.a2a.gateway import Gateway
from redkey.a2a.handler import CALL, LedgerHandler, TransportError, sdk_error
from redkey.errors import CannotListen

_STOP_SECONDS = 5.0


class GrpcFace:
    """The gRPC binding: started and stopped with the server."""

    def __init__(self, face: Face, gateway: Gateway, address: str, body_bytes: int) -> None:
        self._address = address
        options = [("grpc.max_receive_message_length", body_bytes), ("grpc.so_reuseport", 0)]
        self._server = grpc.aio.server(options=options)
        handler = LedgerHandler(gateway)
        # The code that protoc generates has no type annotations.
        add: Any = a2a_pb2_grpc.add_A2AServiceServicer_to_server
        add(_Handler(handler, _Builder(face)), self._server)
        add_older: Any = a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server
        add_older(_OlderHandler(handler, _Builder(face, older=True)), self._server)

    async def start(self) -> int:
        """Start to listen and return the port."""
        try:
            port: int = self._server.add_insecure_port(self._address)
        except RuntimeError as cause:
            raise CannotListen(f"gRPC cannot listen on {self._address}: {cause}") from cause
        await self._server.start()
        return port

    async def stop(self) -> None:
        """Stop: give running calls some seconds to finish, then cancel them."""
        await self._server.stop(_STOP_SECONDS)


class _Builder(GrpcServerCallContextBuilder):
    """Authenticates a caller from the metadata of its call."""

    def __init__(self, face: Face, *, older: bool = False) -> None:
        self._face, self._older = face, older

    def build(self, context: Any) -> ServerCallContext:
        headers: dict[bytes, bytes] = {}
        for name, value in context.invocation_metadata() or ():
            headers.setdefault(name.lower().encode(), value if isinstance(value, bytes) else value.encode())
        try:
            stated = face.version_of(headers)
            if self._older:
                face.check_older(stated)
            else:
                # A call without a version is one of 0.3, whose service has another name.
                face.check_version(stated)
            call = self._face.admit(headers, _address(context.peer()))
        except Exception as error:
            raise sdk_error(error) from None
        if call.extensions:
            context.set_trailing_metadata((("a2a-extensions", ", ".join(sorted(call.extensions))),))
        return ServerCallContext(state={CALL: call})


class _Handler(GrpcHandler):
    """The SDK's handler, with the right gRPC status for errors that A2A itself does not define."""

    async def abort_context(self, error: A2AError, context: Any) -> None:
        if isinstance(error, TransportError):
            await _abort(error.failure, context)
        await super().abort_context(error, context)


class _OlderHandler(CompatGrpcHandler):
    """The same handler for version 0.3."""

    async def abort_context(self, error: A2AError, context: Any) -> None:
        if isinstance(error, TransportError):
            await _abort(error.failure, context)
        await super().abort_context(error, context)


async def _abort(failure: A2aError, context: Any) -> NoReturn:
    """End a call with an error status; this always raises."""
    code = getattr(grpc.StatusCode, failure.kind.grpc, grpc.StatusCode.UNKNOWN)
    status = status_pb2.Status(code=code.value[0], message=failure.message)
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=failure.kind.reason, domain="a2a-protocol.org"))
    status.details.append(detail)
    trailing = [("grpc-status-details-bin", status.SerializeToString())]
    trailing += [(name.decode(), value.decode()) for name, value in failure.headers if name == b"retry-after"]
    context.set_trailing_metadata(tuple(trailing))
    await context.abort(code, failure.message)
    raise AssertionError("an aborted call went on")


def _address(peer: str) -> str:
    """Return the IP address in a gRPC peer such as `ipv4:127.0.0.1:5000` or `ipv6:%5B::1%5D:5000`."""
    return peer.partition(":")[2].rpartition(":")[0].replace("%5B", "").replace("%5D", "")
