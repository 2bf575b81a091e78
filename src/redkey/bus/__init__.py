"""The bus (Weave): live talk between agents, over Unix sockets and HTTP.

`BusClient` and `AsyncBusClient` talk to one; the server's parts are the modules of this package.
"""

from redkey.bus.client import AsyncBusClient, BusClient

__all__ = ["AsyncBusClient", "BusClient"]
