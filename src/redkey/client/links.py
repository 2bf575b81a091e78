"""The links of the sync client: its open connections for plain requests."""

from __future__ import annotations

import select
import socket

from redkey.client.flow import Answer, Broken, Send
from redkey.client.idle import Idle, give_up
from redkey.client.plain import Address, Reader, Writer
from redkey.client.policy import CONNECT_SECONDS
from redkey.client.settings import Settings

_PIECE_BYTES = 64 * 1024


class Links:
    """Sends plain requests to one address, each on its own link. Threads may share it."""

    def __init__(self, address: Address, settings: Settings) -> None:
        self._address, self._writer = address, Writer(address, settings)
        self._idle: Idle[Link] = Idle()

    def send(self, sending: Send, body: bytes) -> Answer | Broken:
        data = self._writer.write(sending, body)
        link = self._idle.take()
        try:
            if link is None:
                link = Link(_connect(self._address, min(CONNECT_SECONDS, sending.silence_seconds)))
            answer = link.exchange(data, sending.silence_seconds)
        except BaseException as failure:
            return give_up(link, failure)
        self._idle.give(link)
        return answer

    def close(self) -> None:
        self._idle.close()


class Link:
    """One connection, for one request at a time."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._reader = connected, Reader()
        self._silence_seconds = connected.gettimeout()
        self._looking = select.poll()
        self._looking.register(connected, select.POLLIN)

    def exchange(self, data: bytes, silence_seconds: float) -> Answer:
        """Send a request and read the answer; OSError if there is none."""
        if silence_seconds != self._silence_seconds:
            self._socket.settimeout(silence_seconds)
            self._silence_seconds = silence_seconds
        self._socket.sendall(data)
        while piece := self._socket.recv(_PIECE_BYTES):
            answer = self._reader.feed(piece)
            if answer is not None:
                return answer
        return self._reader.end()

    @property
    def keeps_open(self) -> bool:
        return self._reader.keeps_open

    def is_alive(self) -> bool:
        """Whether the server has left the connection open: between requests, only its end can be read."""
        return not self._looking.poll(0)

    def close(self) -> None:
        self._socket.close()


def _connect(address: Address, seconds: float) -> socket.socket:
    if address.uds is not None:
        connected = socket.socket(socket.AF_UNIX)
    else:
        connected = socket.create_connection((address.host, address.port), seconds)
    try:
        connected.settimeout(seconds)
        if address.uds is not None:
            connected.connect(address.uds)
        else:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return address.tls.wrap_socket(connected, server_hostname=address.host) if address.tls else connected
    except BaseException:
        connected.close()
        raise
