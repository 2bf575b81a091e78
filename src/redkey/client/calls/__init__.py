"""The calls of the API, one module per family.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""
