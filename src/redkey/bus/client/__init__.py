"""Clients of the bus: a core without I/O, and two clients around it, blocking and asynchronous."""

from redkey.bus.client.aio import AsyncBusClient
from redkey.bus.client.blocking import BusClient

__all__ = ["AsyncBusClient", "BusClient"]
