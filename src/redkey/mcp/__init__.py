"""The MCP door: coding agents claim, work and report by tools of the Model Context Protocol.

One tool list with two faces, both over the SDK (`redkey.client`): `redkey mcp` speaks stdio for one client process and
keeps its leases by threads; `/mcp` of `redkey serve` speaks streamable HTTP without sessions, where every call renews.
The protocol itself is the official `mcp` package (the extra `mcp`), which only modules of this package import.
"""
