"""The A2A door: RedKey as an agent that any A2A 1.0 client can talk to, over JSON-RPC, HTTP+JSON and gRPC."""
