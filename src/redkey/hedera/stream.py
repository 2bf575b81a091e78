"""The mirror's gRPC stream as a wake-up: it says that messages have come, and is believed in nothing else.

Rows of the stream name no payer, so their running hash cannot be checked; messages are read by `reader`. The stream is
the SDK's raw stub: its own subscription loses messages when a callback raises, drops nanoseconds, and ends for good
after ten disconnects.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import grpc
from hiero_sdk_python.hapi.mirror.consensus_service_pb2 import ConsensusTopicQuery
from hiero_sdk_python.hapi.mirror.consensus_service_pb2_grpc import ConsensusServiceStub
from hiero_sdk_python.hapi.services.basic_types_pb2 import TopicID
from hiero_sdk_python.hapi.services.timestamp_pb2 import Timestamp

from redkey.ledger.record import entity
from redkey.wire.times import NANOSECONDS

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0


class Waker:
    """Calls `wake` when the mirror streams a message of a topic; connects again for as long as it runs."""

    def __init__(self, address: str, topic: str, wake: Callable[[], None], *, tls: bool = False) -> None:
        self._address, self._topic, self._wake, self._tls = address, topic, wake, tls
        self._stop = threading.Event()
        self._call: grpc.Future | None = None
        self.connects = 0
        self._thread = threading.Thread(target=self._run, name=f"hedera-waker-{topic}", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """End the stream and the thread."""
        self._stop.set()
        if self._call is not None:
            self._call.cancel()
        self._thread.join()

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stop.is_set():
            self.connects += 1
            try:
                with self._channel() as channel:
                    self._call = ConsensusServiceStub(channel).subscribeTopic(self._query())
                    if self._stop.is_set():
                        self._call.cancel()
                    for _ in self._call:
                        pause = _FIRST_PAUSE
                        self._wake()
            except grpc.RpcError:
                # The reader polls besides: a stream that is down costs time, never a message.
                pass
            self._stop.wait(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    def _channel(self) -> grpc.Channel:
        if self._tls:
            return grpc.secure_channel(self._address, grpc.ssl_channel_credentials())
        return grpc.insecure_channel(self._address)

    def _query(self) -> ConsensusTopicQuery:
        shard, realm, number = entity(self._topic)
        now = time.time_ns()
        start = Timestamp(seconds=now // NANOSECONDS, nanos=now % NANOSECONDS)
        topic = TopicID(shardNum=shard, realmNum=realm, topicNum=number)
        return ConsensusTopicQuery(topicID=topic, consensusStartTime=start)
