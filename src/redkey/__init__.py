"""RedKey gives parallel agents a shared verified queue.

Read the packages in the order an event travels: `wire` (what an event is), `ledger` (what happened), `plans`,
`reducers` (what it means), `commands` (what may happen next), `readmodel` (what we show), `services` (the one write
path), `stores`, `api`. Programs that use RedKey begin with `client`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """`__version__`, found when it is asked for: to find it takes longer than most commands need to start."""
    if name == "__version__":
        from importlib.metadata import version

        return version("redkey")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
