"""Run a stand-in network: a gRPC server for each node, which is the mirror's too, and an HTTP server for REST."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer
from threading import Thread
from types import TracebackType

import grpc
from hiero_sdk_python.crypto.private_key import PrivateKey
from hiero_sdk_python.hapi.mirror.consensus_service_pb2_grpc import (
    add_ConsensusServiceServicer_to_server as add_mirror,
)
from hiero_sdk_python.hapi.services.consensus_service_pb2_grpc import (
    add_ConsensusServiceServicer_to_server as add_consensus,
)
from hiero_sdk_python.hapi.services.crypto_service_pb2_grpc import add_CryptoServiceServicer_to_server as add_crypto

from redkey.hedera.standin.faults import Faults
from redkey.hedera.standin.nodes import ConsensusNode, MirrorStream
from redkey.hedera.standin.rest import MirrorRest, handler
from redkey.hedera.standin.state import NetworkState
from redkey.ledger.fees import HBAR, ExchangeRate

# 12 cents an HBAR. Anything will do: clients must ask for the rate.
RATE = ExchangeRate(cents=12, hbars=1, expires=4_102_444_800)
_WORKERS = 32


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class StandIn:
    """A running stand-in network on the loopback; `with StandIn() as network:` ends it.

    `nodes` maps gRPC addresses to node accounts, `mirror` is the address of the mirror's stream and `rest` the URL of
    its REST API.
    """

    def __init__(
        self,
        *,
        faults: Faults | None = None,
        clock: Callable[[], int] = time.time_ns,
        rate: ExchangeRate = RATE,
        nodes: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        rest_port: int = 0,
    ) -> None:
        self.faults = faults or Faults()
        self.state = NetworkState(clock, self.faults, rate, nodes)
        self._servers = []
        self.nodes: dict[str, str] = {}
        for place, node in enumerate(self.state.nodes):
            server = grpc.server(ThreadPoolExecutor(_WORKERS), options=[("grpc.so_reuseport", 0)])
            service = ConsensusNode(self.state, node)
            add_consensus(service, server)
            add_crypto(service, server)
            add_mirror(MirrorStream(self.state), server)
            bound = server.add_insecure_port(f"{host}:{port + place if port else 0}")
            self.nodes[f"{host}:{bound}"] = node
            self._servers.append(server)
        self.mirror = next(iter(self.nodes))
        self._http = _Http((host, rest_port), handler(MirrorRest(self.state)))
        self.rest = f"http://{host}:{self._http.server_address[1]}"
        self._thread = Thread(target=self._http.serve_forever, name="standin-rest", kwargs={"poll_interval": 0.05})

    def start(self) -> None:
        """Begin to answer."""
        for server in self._servers:
            server.start()
        self._thread.start()

    def stop(self) -> None:
        """End the servers and all streams."""
        self.state.close()
        for stopped in [server.stop(grace=0) for server in self._servers]:
            stopped.wait()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def open_account(self, hbar: float = 1000, key: PrivateKey | None = None) -> tuple[str, PrivateKey]:
        """Create a funded account; return its id and its private key."""
        key = key or PrivateKey.generate_ed25519()
        return self.state.open_account(key.public_key().to_proto_key(), int(hbar * HBAR)), key

    def __enter__(self) -> StandIn:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
