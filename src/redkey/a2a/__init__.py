"""The A2A gateway: any A2A 1.0 client can use RedKey as an agent, over JSON-RPC, HTTP+JSON and gRPC."""
