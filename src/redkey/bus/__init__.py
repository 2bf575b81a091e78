"""The bus (Weave): live messages between agents, over Unix sockets and HTTP.

`BusClient` and `AsyncBusClient` are its clients; the other modules are the server.
"""

from redkey.bus.client import AsyncBusClient, BusClient

__all__ = ["AsyncBusClient", "BusClient"]
