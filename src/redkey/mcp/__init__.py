"""The MCP server: coding agents claim, work and report by tools of the Model Context Protocol.

There is one tool list with two transports, both on the SDK (`redkey.client`): `redkey mcp` speaks stdio with one client
process and renews its leases in threads; `/mcp` of `redkey serve` speaks streamable HTTP without sessions, where every
call renews the leases. The official `mcp` package (the extra `mcp`) implements the protocol; only modules of this
package import it.
"""
