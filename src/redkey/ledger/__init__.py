"""The ledger: records, the running hash, the Merkle tree, checkpoints, receipts, and the store ports.

Nothing here does I/O: the adapters are in `redkey.stores`.
"""
