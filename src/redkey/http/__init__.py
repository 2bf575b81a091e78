"""The HTTP server under every HTTP interface of RedKey: connections, exchanges, hosting, limits, problem replies."""
