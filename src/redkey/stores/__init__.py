"""Stores: adapters that implement the ports of the ledger.

`memory` is for simulations, `sqlite` is the embedded default, `postgres` is for several servers. `opening` chooses one.
"""
