"""The calls of the API, a family a module.

Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current.
"""
