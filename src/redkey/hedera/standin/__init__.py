"""A Hedera network on one machine: consensus nodes by gRPC and a mirror node by gRPC and REST, with faults on request.

It keeps the rules of the real network that RedKey depends on: sequence numbers, running hashes, consensus times,
signatures, fees, error codes and paging. It has no consensus among nodes and keeps everything in memory.
"""
