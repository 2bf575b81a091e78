"""RedKey gives parallel agents a shared verified queue.

Read the packages in the order an event travels: `wire` (what an event is), `ledger` (what happened).
"""

from importlib.metadata import version

__version__ = version("redkey")
