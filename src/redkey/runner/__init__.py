"""The runner: gives tasks to an agent, verifies its work and reports the result; it uses the SDK to call the server."""
