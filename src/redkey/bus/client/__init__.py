"""Clients of the bus: one core without I/O, and two thin shells around it, blocking and asynchronous."""

from redkey.bus.client.aio import AsyncBusClient
from redkey.bus.client.blocking import BusClient

__all__ = ["AsyncBusClient", "BusClient"]
