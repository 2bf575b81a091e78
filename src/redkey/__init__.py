"""RedKey gives parallel agents a shared verified queue.

Read the packages in the order an event travels: `wire` (what an event is), `ledger` (what happened), `plans`,
`reducers` (what it means), `commands` (what may happen next), `readmodel` (what we show), `services` (the one write
path), `stores`, `api`. Programs that use RedKey begin with `client`.
"""

# The version of both distributions of this tree, `redkey-client` and `redkey`.
__version__ = "0.1.0"
