"""Hedera networks: submit messages, read topics by a mirror, and a stand-in network for development and tests.

Everything here needs the extra `redkey[hedera]` and is imported only where it is used: gRPC is slow to load.
"""
